defmodule Skillbook.HTTP.Adapter do
  @moduledoc """
  The behaviour of HTTP clients that `Skillbook.HTTP` can use.

  An adapter sends one request and passes on its response. `Skillbook.HTTP` follows redirects,
  unpacks gzip and enforces the limits.
  """

  alias Skillbook.HTTP.{Error, Request}

  @typedoc "Options of the request. Times are in milliseconds; `:timeout` is the time left."
  @type settings :: %{
          connect_timeout: pos_integer(),
          idle_timeout: pos_integer(),
          timeout: non_neg_integer(),
          cacertfile: Path.t() | nil,
          protocol: :auto | :http1 | :http2,
          proxy: :env | nil | String.t() | (() -> String.t() | nil)
        }

  @type part ::
          {:head, status :: 100..999, headers :: [{String.t(), String.t()}]} | {:data, binary()}

  @doc """
  Makes one request and calls `fun` with each part of the response, the head first.

  The arguments are

    * the `Skillbook.HTTP.Request`, whose `:headers` are a function without arguments
    * the `t:settings/0`
    * the options of `adapter: {module, options}`, `[]` for a module alone
    * the accumulator, with which the first call of `fun` is made
    * `fun`, which gets a `t:part/0` and the accumulator. `{:cont, acc}` goes on, and
      `{:halt, acc}` cancels the request

  It returns `{:ok, acc}` after the last part, `{:halted, acc}` if `fun` has cancelled the
  request, or `{:error, %Skillbook.HTTP.Error{}, acc}`, each with the accumulator so far. The
  `:place` of the error may be `nil`, since `Skillbook.HTTP` fills it in.

  An adapter must not follow redirects, unpack bodies, repeat requests that are not idempotent, or
  leave messages in the mailbox. Its errors must not contain headers, the body or the URL.
  """
  @callback stream(Request.t(), settings(), options :: keyword(), acc, fun) ::
              {:ok, acc} | {:halted, acc} | {:error, Error.t(), acc}
            when acc: term(),
                 fun: (part(), acc -> {:cont, acc} | {:halt, acc})
end
