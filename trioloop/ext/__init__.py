"""What joins trioloop to other libraries; each module needs an extra of its own."""
