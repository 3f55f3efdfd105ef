"""Plans before they run: read strictly, shown, costed, held against a host."""
