[
  inputs: [
    "{mix,.formatter}.exs",
    "{config,lib,test,bench}/**/*.{ex,exs}",
    "examples/*.exs",
    "examples/*/*.exs",
    "examples/*/{config,lib,test}/**/*.{ex,exs}"
  ],
  # Those of Phoenix, for examples/phoenix.
  locals_without_parens: [live: 2, pipe_through: 1, plug: 1, plug: 2, socket: 3],
  line_length: 98
]
