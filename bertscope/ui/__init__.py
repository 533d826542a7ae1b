"""Streamlit widgets, figures and HTML components: the only part that imports streamlit."""
