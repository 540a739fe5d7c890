defmodule Skillbook.Transcript do
  @moduledoc ~S"""
  A conversation with a model, which `Skillbook.Agent.run/3` returns and can continue.

  ## Fields

    * `:profile` - the id of its profile. Another profile cannot continue it
    * `:messages` - a list of `Skillbook.Transcript.Message`, the oldest first
    * `:left_out` - the texts of entries in messages that were removed to save room, each as a
      `t:Skillbook.Transcript.Message.activation/0`, the most recent first
    * `:view` - the view whose skills the model knows about, or `nil`. Not part of the JSON

  ## Examples

      iex> alias Skillbook.{Transcript, Transcript.Message}
      iex> message = %Message{kind: :input, content: "Hi", at: ~U[2026-11-21 08:00:00Z]}
      iex> transcript = "default" |> Transcript.new() |> Transcript.add(message)
      iex> transcript |> Transcript.to_json() |> Transcript.from_json() == {:ok, transcript}
      true

      iex> {:error, error} = Skillbook.Transcript.from_json(~S({"version": 2}))
      iex> Exception.message(error)
      "the transcript's version: expected 1, got: 2"
  """

  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.Transcript.Message
  alias Skillbook.{Model, TranscriptError, View}

  @type t :: %__MODULE__{
          profile: String.t(),
          messages: [Message.t()],
          left_out: [Message.activation()],
          view: View.t() | nil
        }

  @enforce_keys [:profile]
  defstruct [:profile, :view, messages: [], left_out: []]

  @version 1
  @kinds [:prompt, :input, :preloaded, :reply, :report, :news, :note]

  @doc "Returns an empty conversation of the profile with this id."
  @spec new(String.t()) :: t()
  def new(profile) when is_binary(profile), do: %__MODULE__{profile: profile}

  @doc "Appends a message."
  @spec add(t(), Message.t()) :: t()
  def add(%__MODULE__{} = transcript, %Message{} = message),
    do: %{transcript | messages: transcript.messages ++ [message]}

  @doc ~S"""
  Returns the messages for `Skillbook.Model.chat/4`.

  Consecutive messages of one role are merged, since many models require alternating roles.

      iex> at = ~U[2026-11-21 08:00:00Z]
      iex> transcript = %Skillbook.Transcript{profile: "default", messages: [
      ...>   %Skillbook.Transcript.Message{kind: :news, content: "New: haiku", at: at},
      ...>   %Skillbook.Transcript.Message{kind: :input, content: "Hi", at: at}
      ...> ]}
      iex> Skillbook.Transcript.for_model(transcript)
      [%{role: :user, content: "New: haiku\n\nHi"}]
  """
  @spec for_model(t()) :: [Model.message()]
  def for_model(%__MODULE__{messages: messages}) do
    messages
    |> Enum.chunk_by(&Message.role/1)
    |> Enum.map(fn [first | _] = group ->
      %{role: Message.role(first), content: Enum.map_join(group, "\n\n", & &1.content)}
    end)
  end

  @doc """
  Returns the entries whose whole texts are or were in the conversation, each once, the most
  recent first.
  """
  @spec activations(t()) :: [Message.activation()]
  def activations(%__MODULE__{} = transcript) do
    (Enum.reverse(present(transcript)) ++ transcript.left_out)
    |> Enum.reject(&Message.part?/1)
    |> Enum.uniq_by(& &1.name)
  end

  @doc false
  # Those whose texts are still in the conversation, the oldest first.
  @spec present(t()) :: [Message.activation()]
  def present(%__MODULE__{messages: messages}), do: Enum.flat_map(messages, & &1.activations)

  @doc """
  Estimates the tokens of the conversation, rather too many than too few.
  """
  @spec tokens(t()) :: non_neg_integer()
  def tokens(%__MODULE__{messages: messages}),
    do: messages |> Enum.map(&estimate(&1.content)) |> Enum.sum()

  @doc false
  # A token for four ASCII characters or one other character, and four for the role of a message.
  @spec estimate(String.t()) :: non_neg_integer()
  def estimate(text), do: estimate(text, 0, 0)

  defp estimate(<<byte, rest::binary>>, ascii, others) when byte < 0x80,
    do: estimate(rest, ascii + 1, others)

  defp estimate(<<byte, rest::binary>>, ascii, others) when byte >= 0xC0,
    do: estimate(rest, ascii, others + 1)

  defp estimate(<<_, rest::binary>>, ascii, others), do: estimate(rest, ascii, others)
  defp estimate("", ascii, others), do: div(ascii + 3, 4) + others + 4

  # JSON

  @doc """
  Encodes the conversation as JSON, to store it and continue it later.

  It contains everything that the profile has read. Protect it accordingly.
  """
  @spec to_json(t()) :: String.t()
  def to_json(%__MODULE__{} = transcript) do
    %{
      version: @version,
      profile: transcript.profile,
      messages: Enum.map(transcript.messages, &fields/1),
      left_out: transcript.left_out
    }
    |> JSON.encode()
  end

  defp fields(message), do: %{Map.from_struct(message) | at: DateTime.to_iso8601(message.at)}

  @doc """
  Decodes the JSON of `to_json/1`.

  A missing, unknown or invalid field returns a `Skillbook.TranscriptError` with its place.
  """
  @spec from_json(String.t()) :: {:ok, t()} | {:error, TranscriptError.t()}
  def from_json(json) when is_binary(json) do
    with {:ok, value} <- decode(json),
         :ok <- version(value),
         {:ok, fields} <-
           object(value, "",
             version: &whole/2,
             profile: &text/2,
             messages: &messages/2,
             left_out: &activations/2
           ),
         do: {:ok, struct!(__MODULE__, Map.delete(fields, :version))}
  end

  defp decode(json) do
    with {:error, error} <- JSON.decode(json), do: wrong("", "JSON", Exception.message(error))
  end

  # Checked first, since another version has other fields.
  defp version(%{"version" => @version}), do: :ok
  defp version(%{"version" => other}), do: wrong("version", to_string(@version), show(other))
  defp version(_), do: wrong("", "an object with the field `version`", "none")

  defp messages(value, path) do
    with {:ok, messages} <- list(value, path, &message/2),
         nil <- messages |> Enum.drop(1) |> Enum.find_index(&(&1.kind == :prompt)) do
      {:ok, messages}
    else
      {:error, _} = error ->
        error

      place ->
        wrong("#{path}[#{place + 1}].kind", "a prompt only as the first message", show("prompt"))
    end
  end

  defp message(value, path) do
    checks = [
      kind: &kind/2,
      content: &text/2,
      at: &time/2,
      activations: &activations/2,
      usage: &usage/2
    ]

    with {:ok, fields} <- object(value, path, checks), do: {:ok, struct!(Message, fields)}
  end

  defp activations(value, path), do: list(value, path, &activation/2)

  defp activation(value, path),
    do: object(value, path, name: &text/2, hash: &text/2, command: &text/2, answer: &text/2)

  defp usage(nil, _path), do: {:ok, nil}

  defp usage(value, path),
    do: object(value, path, prompt_tokens: &whole/2, completion_tokens: &whole/2)

  defp kind(value, path) do
    case Enum.find(@kinds, &(to_string(&1) == value)) do
      nil -> wrong(path, "one of #{Enum.join(@kinds, ", ")}", show(value))
      kind -> {:ok, kind}
    end
  end

  defp text(value, _path) when is_binary(value), do: {:ok, value}
  defp text(value, path), do: wrong(path, "text", show(value))

  defp whole(value, _path) when is_integer(value) and value >= 0, do: {:ok, value}
  defp whole(value, path), do: wrong(path, "a whole number from 0", show(value))

  defp time(value, path) do
    with true <- is_binary(value),
         {:ok, time, 0} <- DateTime.from_iso8601(value) do
      {:ok, time}
    else
      _ -> wrong(path, "a time such as \"2026-11-21T08:00:00Z\"", show(value))
    end
  end

  defp list(values, path, check) when is_list(values) do
    values
    |> Enum.with_index()
    |> Options.each(fn {value, place} -> check.(value, "#{path}[#{place}]") end)
  end

  defp list(value, path, _check), do: wrong(path, "a list", show(value))

  # Checks the fields in order; any others are an error.
  defp object(%{} = object, path, checks) do
    result =
      Enum.reduce_while(checks, {:ok, %{}, object}, fn {key, check}, {:ok, fields, rest} ->
        with {:ok, value, rest} <- pop(rest, key, path),
             {:ok, value} <- check.(value, join(path, key)) do
          {:cont, {:ok, Map.put(fields, key, value), rest}}
        else
          {:error, _} = error -> {:halt, error}
        end
      end)

    with {:ok, fields, rest} <- result do
      case Map.keys(rest) do
        [] ->
          {:ok, fields}

        [key | _] ->
          wrong(path, "the fields #{Enum.join(Keyword.keys(checks), ", ")}", "also #{show(key)}")
      end
    end
  end

  defp object(value, path, _checks), do: wrong(path, "an object", show(value))

  defp pop(object, key, path) do
    case Map.pop(object, to_string(key), :missing) do
      {:missing, _} -> wrong(path, "the field `#{key}`", "none")
      {value, rest} -> {:ok, value, rest}
    end
  end

  defp join("", key), do: to_string(key)
  defp join(path, key), do: "#{path}.#{key}"

  defp show(value), do: inspect(value, limit: 5, printable_limit: 60)

  defp wrong("", expected, got), do: wrong(nil, expected, got)

  defp wrong(path, expected, got),
    do: {:error, %TranscriptError{path: path, expected: expected, got: got}}
end
