"""Model providers: scripted, and any endpoint that speaks the OpenAI chat API."""
