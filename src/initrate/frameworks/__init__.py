"""Adapters: the weights of a model of torch, Hugging Face, JAX or Keras as records, and back."""
