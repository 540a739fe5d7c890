defmodule Skillbook.Model.Messages do
  @moduledoc false
  # The messages of a conversation in the forms that servers accept, whichever model wrote them:
  # ids and names of calls, arguments, and the parts of an answer with the vendor's own data.
  #
  # That data (`opaque`) is for the same model of the same vendor, since others refuse it. It has
  # the order of the parts of an answer. It does not repeat their texts, so a text that was
  # removed from a message is in no request.

  alias Skillbook.Model
  alias Skillbook.Support.JSON

  @typedoc """
  A part of an answer: text, a call, or data of the vendor. The map has fields that the vendor
  added to the text or the call.
  """
  @type part :: {:text, String.t(), map()} | {:call, Model.tool_call(), map()} | {:data, map()}

  # Anthropic suggests this form for arguments that are no JSON object.
  @invalid "INVALID_JSON"

  @doc "The system prompt at the start of the messages, or `nil`, and the other messages."
  @spec split([Model.message()]) :: {String.t() | nil, [Model.message()]}
  def split(messages) do
    case Enum.split_while(messages, &(&1.role == :system)) do
      {[], rest} -> {nil, rest}
      {system, rest} -> {Enum.map_join(system, "\n\n", & &1.content), rest}
    end
  end

  @doc "The parts of an assistant's message, for a model of a vendor."
  @spec parts(Model.message(), String.t(), String.t()) :: [part()]
  def parts(message, vendor, model) do
    calls = message[:tool_calls] || []

    with %{"vendor" => ^vendor, "model" => ^model, "parts" => parts} when is_list(parts) <-
           message[:opaque],
         {:ok, parts} <- place(parts, message.content, calls, []) do
      parts
    else
      _ -> text(message.content) ++ for(call <- calls, do: {:call, call, %{}})
    end
  end

  defp text(""), do: []
  defp text(text), do: [{:text, text, %{}}]

  # The texts and calls of a stored answer, which have to be exactly those of the message.
  defp place([], "", [], done), do: {:ok, Enum.reverse(done)}

  defp place([%{"text" => size} = part | parts], text, calls, done)
       when is_integer(size) and size in 0..byte_size(text)//1 do
    {text, rest} = :erlang.split_binary(text, size)

    if String.valid?(text),
      do: place(parts, rest, calls, [{:text, text, fields(part)} | done]),
      else: :error
  end

  # By their order, since a conversation may give a call another id.
  defp place([%{"call" => index} = part | parts], text, [call | calls], done)
       when is_integer(index),
       do: place(parts, text, calls, [{:call, call, fields(part)} | done])

  defp place([%{"data" => %{} = data} | parts], text, calls, done),
    do: place(parts, text, calls, [{:data, data} | done])

  defp place(_parts, _text, _calls, _done), do: :error

  defp fields(%{"fields" => %{} = fields}), do: fields
  defp fields(_part), do: %{}

  @doc """
  The arguments of a call as a map. If they are no JSON object, it has their text.

      iex> Skillbook.Model.Messages.arguments(~S({"id": "T-1"}))
      %{"id" => "T-1"}
      iex> Skillbook.Model.Messages.arguments(~S({"id": "T-))
      %{"INVALID_JSON" => ~S({"id": "T-)}
  """
  @spec arguments(String.t()) :: map()
  def arguments(text) do
    case {String.trim(text), JSON.decode(text)} do
      {"", _} -> %{}
      {_, {:ok, %{} = arguments}} -> arguments
      _ -> %{@invalid => if(String.valid?(text), do: text, else: inspect(text))}
    end
  end

  @doc "The arguments of a call as JSON: as they were written, if they are an object."
  @spec arguments_text(String.t()) :: String.t()
  def arguments_text(text) do
    case JSON.decode(text) do
      {:ok, %{}} -> text
      _ -> text |> arguments() |> JSON.encode()
    end
  end

  @doc """
  The id of a call for a vendor that limits its length and characters. Other ids are replaced, for
  a call and its result alike.
  """
  @spec call_id(String.t(), pos_integer()) :: String.t()
  def call_id(id, max) do
    if byte_size(id) <= max and id =~ ~r/\A[a-zA-Z0-9_-]+\z/,
      do: id,
      else: "call_" <> hash(id, 24)
  end

  @doc "The name of a tool in a call. A model may have called a name that no tool can have."
  @spec tool_name(String.t()) :: String.t()
  def tool_name(name) do
    if name =~ ~r/\A[a-zA-Z_][a-zA-Z0-9_-]{0,63}\z/ do
      name
    else
      plain = name |> String.replace(~r/[^a-zA-Z0-9_-]+/, "_") |> String.slice(0, 40)
      "unknown_#{plain}"
    end
  end

  @doc "A text for the id of a call to which the server gave none."
  @spec random() :: String.t()
  def random, do: 12 |> :crypto.strong_rand_bytes() |> Base.encode16(case: :lower)

  @doc "The start of a hash of a term, in hexadecimal."
  @spec hash(iodata(), pos_integer()) :: String.t()
  def hash(text, digits),
    do: :sha256 |> :crypto.hash(text) |> Base.encode16(case: :lower) |> binary_part(0, digits)
end
