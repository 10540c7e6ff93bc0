"""The scanner, the resolver and the rules of recovery bundles."""
