"""Model providers: scripted, and any endpoint that speaks the OpenAI chat API or the Anthropic messages API."""
