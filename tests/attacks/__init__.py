"""Attacks on the permissions, each as a short script: what an agent tries, and what it gets."""
