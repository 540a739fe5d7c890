defmodule Skillbook.Support.ServerFailure do
  @moduledoc false
  # The frame of `ModelError` and `EmbedderError`: failures of servers, with the same kinds.

  alias Skillbook.Support.Hidden

  @kinds [:key, :connection, :timeout, :rate_limited, :server, :refused]

  @doc """
  Makes a module such an error: its fields with their types, and `message/1`.

    * `:whose` - like `the model`
    * `:kinds` - the texts of kinds beside those of all servers
    * `:fields` - further fields: `{type, default}`
  """
  defmacro __using__(error) do
    fields = error[:fields] || []
    types = for {name, {type, _default}} <- fields, do: {name, type}
    defaults = for {name, {_type, default}} <- fields, do: {name, default}

    [last | kinds] = Enum.reverse(@kinds ++ Keyword.keys(error[:kinds]))
    kind = Enum.reduce(kinds, last, &{:|, [], [&1, &2]})

    quote do
      @type kind :: unquote(kind)

      @type t :: %__MODULE__{
              unquote_splicing(types),
              kind: kind(),
              reason: String.t(),
              status: pos_integer() | nil,
              retry_after: non_neg_integer() | nil
            }

      @enforce_keys [:kind, :reason]
      defexception [:kind, :reason, :status, :retry_after] ++ unquote(defaults)

      @impl true
      def message(%{kind: kind} = error) do
        text =
          unquote(error[:kinds])[kind] || unquote(__MODULE__).text(kind, unquote(error[:whose]))

        unquote(__MODULE__).message(error, text)
      end
    end
  end

  @doc """
  The message of such an error, with hidden characters of the server's text by their codes.
  `failure` is the text of its kind.
  """
  @spec message(Exception.t(), String.t()) :: String.t()
  def message(error, failure) do
    reason = Hidden.visible("#{error.reason}")
    "#{failure}#{status(error.status)}#{again(error.retry_after)}: #{reason}"
  end

  defp status(nil), do: ""
  defp status(status), do: " (#{status})"

  defp again(nil), do: ""
  defp again(milliseconds), do: ", again in #{ceil(milliseconds / 1000)} s"

  @doc "The text for a kind of failure that all servers have. `whose` is like `the model`."
  @spec text(atom(), String.t()) :: String.t()
  def text(:key, whose), do: "no key for #{whose}'s server"
  def text(:connection, whose), do: "no connection to #{whose}'s server"
  def text(:timeout, whose), do: "#{whose} took too long"
  def text(:rate_limited, whose), do: "#{whose}'s server accepts no more requests for now"
  def text(:server, whose), do: "#{whose}'s server failed"
  def text(:refused, whose), do: "#{whose}'s server refused the request"
end
