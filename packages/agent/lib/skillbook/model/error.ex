defmodule Skillbook.ModelError do
  @moduledoc """
  Returned when a model gives no answer, or not a whole one.

  ## Fields

    * `:kind` - the kind of failure:
      * `:key` - the key is missing or invalid
      * `:connection` - no connection, one that broke before an answer, or an untrusted
        certificate
      * `:timeout` - a time limit was reached, here or at the server (408)
      * `:rate_limited` - too many requests (429), or a limit that the server reports in its
        answer
      * `:server` - the server failed (5xx), or reported an error in its answer
      * `:refused` - the server refused the request (another 4xx)
      * `:too_long` - the server refused the request, since the conversation is longer than the
        model's context; or its images, files and audio are more than the model's `:media` allows
      * `:media` - the model does not take an image, a file or audio of the messages, or it is too
        large; nothing was sent
      * `:bad_answer` - the response is not a chat completion
      * `:cut_off` - the connection ended in the middle of the answer
    * `:reason` - a description, without the key
    * `:status` - the HTTP status, or `nil`
    * `:retry_after` - how long the server asks to wait, in milliseconds, or `nil`
    * `:text` - the part of the answer that arrived

  ## Examples

      iex> error = %Skillbook.ModelError{kind: :server, status: 503, reason: "overloaded"}
      iex> Exception.message(error)
      "the model's server failed (503): overloaded"

      iex> error = %Skillbook.ModelError{kind: :rate_limited, reason: "slow", retry_after: 2_000}
      iex> Exception.message(error)
      "the model's server accepts no more requests for now, again in 2 s: slow"
  """

  use Skillbook.Support.ServerFailure,
    whose: "the model",
    kinds: [
      too_long: "the conversation is too long for the model",
      media: "the model does not take the messages",
      bad_answer: "the model's answer cannot be read",
      cut_off: "the model's answer was cut off"
    ],
    fields: [text: {String.t(), ""}]
end
