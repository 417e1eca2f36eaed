"""CLIP and SigLIP on scenes with captions: the runs that `benchmarks/images_and_sentences.py` records."""
