defmodule Skillbook.EmbedderError do
  @moduledoc """
  Returned when an embedder gives no vectors, or none that can be used.

  ## Fields

    * `:kind` - the kind of failure:
      * `:key` - the key is missing or invalid
      * `:connection` - no connection, one that broke before an answer, or an untrusted
        certificate
      * `:timeout` - a time limit was reached
      * `:rate_limited` - too many requests (status 429)
      * `:server` - the server failed (5xx), or reported an error in its answer
      * `:refused` - the server refused the request (another 4xx)
      * `:bad_answer` - the answer has no vectors, or wrong ones
      * `:library` - the native library of `Skillbook.Embedder.Local` is not built
      * `:folder` - the folder of a model cannot be used
      * `:failed` - the embedder raised or did not return an answer
    * `:reason` - a description, without the key
    * `:status` - the HTTP status, or `nil`
    * `:retry_after` - how long the server asks to wait, in milliseconds, or `nil`

  ## Examples

      iex> error = %Skillbook.EmbedderError{kind: :server, status: 503, reason: "loading model"}
      iex> Exception.message(error)
      "the embedder's server failed (503): loading model"

      iex> error = %Skillbook.EmbedderError{kind: :rate_limited, reason: "slow", retry_after: 9}
      iex> Exception.message(error)
      "the embedder's server accepts no more requests for now, again in 1 s: slow"
  """

  use Skillbook.Support.ServerFailure,
    whose: "the embedder",
    kinds: [
      bad_answer: "the embedder's answer cannot be used",
      library: "the local embedder is not built",
      folder: "the embedder's model cannot be used",
      failed: "the embedder failed"
    ]
end
