"""Families whose predictive is a closed form that approximates a posterior's."""
