defmodule Skillbook.Model.Object do
  @moduledoc false
  # Asks a model for a JSON object of a schema: sends the schema, finds the object in the answer,
  # checks it, and asks once more with the error if it is not as expected.

  alias Skillbook.Model.JSONSchema
  alias Skillbook.Run.Worker
  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.{Model, ModelError, ObjectError, OptionError}

  @default_timeout 30_000
  @default_bytes 64 * 1024
  # The opening braces of an answer that are tried.
  @max_starts 64

  @type answer :: %{object: map(), usage: Model.usage() | nil}

  @spec complete(Model.t(), [Model.message()], map(), keyword()) ::
          {:ok, answer()} | {:error, ModelError.t() | ObjectError.t()}
  def complete(model, messages, schema, options) do
    with :ok <- Options.validate(options, "an object of a model", options()),
         chat = Keyword.drop(options, [:timeout, :max_bytes, :constrain, :read]),
         :ok <- Model.validate(chat) do
      sent = options[:constrain] || schema
      Enum.each([schema, sent], &JSONSchema.check!/1)

      call = %{
        model: model,
        schema: schema,
        messages: instruct(messages, sent),
        chat: Keyword.put(chat, :schema, JSONSchema.closed(sent)),
        read: options[:read] || (&Function.identity/1),
        max_bytes: options[:max_bytes] || @default_bytes,
        timeout: options[:timeout] || @default_timeout
      }

      in_time(call)
    else
      {:error, %OptionError{} = error} -> raise error
    end
  end

  # In a process of its own, since the model may be any code.
  defp in_time(call) do
    deadline = System.monotonic_time(:millisecond) + call.timeout
    worker = Worker.start(nil, [], fn -> attempts(call, deadline) end)

    case Worker.run(worker, call.timeout) do
      {:ok, result} ->
        result

      :timeout ->
        reason = "no object within #{call.timeout} ms"
        {:error, %ModelError{kind: :timeout, reason: reason}}

      {:crash, {%_{} = exception, stack}} when is_exception(exception) and is_list(stack) ->
        reraise exception, stack

      {:crash, reason} ->
        exit(reason)
    end
  end

  defp attempts(call, deadline) do
    with {:ok, answer} <- ask(call, deadline),
         {:error, error, text} <- read(answer, call) do
      call = %{call | messages: call.messages ++ repair(error, text)}

      with {:ok, second} <- ask(call, deadline) do
        second = %{second | usage: add(answer.usage, second.usage)}

        with {:error, error, text} <- read(second, call),
             do: {:error, %{error | text: text}}
      end
    end
  end

  # A server that does not know schemas is asked again without one.
  defp ask(call, deadline) do
    with {:error, error} <- chat(call, deadline) do
      if refuses_schema?(error),
        do: chat(%{call | chat: Keyword.delete(call.chat, :schema)}, deadline),
        else: {:error, error}
    end
  end

  # The server of llama-cpp-python reports an invalid request as its own failure.
  defp refuses_schema?(%{kind: :refused, status: status}), do: status in [400, 422]
  defp refuses_schema?(%{kind: :server, reason: reason}), do: reason =~ "response_format"
  defp refuses_schema?(_error), do: false

  defp chat(call, deadline) do
    left = max(deadline - System.monotonic_time(:millisecond), 1)
    size = :counters.new(1, [])

    on_text = fn text ->
      :counters.add(size, 1, byte_size(text))
      if :counters.get(size, 1) > call.max_bytes, do: throw({__MODULE__, :too_long})
    end

    Model.chat(call.model, call.messages, Keyword.put(call.chat, :timeout, left), on_text)
  catch
    {__MODULE__, :too_long} -> {:ok, %{text: "", usage: nil, finish_reason: :too_long}}
  end

  defp read(%{finish_reason: :too_long}, call) do
    expected = "an answer of at most #{call.max_bytes} bytes"
    {:error, %ObjectError{expected: expected, got: "more"}, ""}
  end

  defp read(%{text: text} = answer, call) do
    case find(text, &check(&1, call)) do
      {:ok, object} -> {:ok, %{object: object, usage: answer.usage}}
      {:error, error} -> {:error, cut_off(error, answer), text}
    end
  end

  # The limit explains an incomplete text better than the place where it ends.
  defp cut_off(%{path: "", expected: "a JSON object"} = error, %{finish_reason: :length}),
    do: %{error | got: "an answer that was cut off at its limit of tokens"}

  defp cut_off(error, _answer), do: error

  defp check(value, %{schema: schema, read: read}) do
    with %{} = object <- read.(value) do
      with :ok <- JSONSchema.check(schema, object), do: {:ok, object}
    else
      _other -> nil
    end
  end

  @doc """
  The last object in a text that is as expected, since models think first and answer then. If none
  is, the error of the last one. The check returns `nil` for a value that is no object at all.
  """
  @spec find(String.t(), (map() | list() -> {:ok, map()} | {:error, error} | nil)) ::
          {:ok, map()} | {:error, error | ObjectError.t()}
        when error: Exception.t()
  def find(text, check) do
    checked =
      for {:ok, value} when is_map(value) or is_list(value) <-
            text |> candidates() |> Enum.map(&JSON.decode/1),
          result = check.(value),
          do: result

    Enum.find(checked, &match?({:ok, _}, &1)) || List.first(checked) || {:error, none(text)}
  end

  defp none(text) do
    got =
      case String.trim(text) do
        "" -> "nothing"
        text -> JSONSchema.show(text)
      end

    %ObjectError{expected: "a JSON object", got: got}
  end

  # The whole text, then the outermost `{…}` in it, the last first.
  defp candidates(text) do
    text = if String.valid?(text), do: text, else: ""
    [text | objects(text, 0, @max_starts, [])]
  end

  defp objects(_text, _from, 0, found), do: found

  defp objects(text, from, left, found) do
    case :binary.match(text, "{", scope: {from, byte_size(text) - from}) do
      :nomatch ->
        found

      {start, 1} ->
        rest = binary_part(text, start, byte_size(text) - start)

        case closing(rest, start, 0, false) do
          nil -> objects(text, start + 1, left - 1, found)
          stop -> objects(text, stop, left - 1, [binary_part(text, start, stop - start) | found])
        end
    end
  end

  # The end of the object with which a text begins, at a byte of the whole text. Braces in strings
  # do not count.
  defp closing("", _at, _depth, _quoted), do: nil

  defp closing(<<"\\", _, rest::binary>>, at, depth, true),
    do: closing(rest, at + 2, depth, true)

  defp closing("\"" <> rest, at, depth, quoted), do: closing(rest, at + 1, depth, not quoted)
  defp closing("{" <> rest, at, depth, false), do: closing(rest, at + 1, depth + 1, false)
  defp closing("}" <> _rest, at, 1, false), do: at + 1
  defp closing("}" <> rest, at, depth, false), do: closing(rest, at + 1, depth - 1, false)
  defp closing(<<_, rest::binary>>, at, depth, quoted), do: closing(rest, at + 1, depth, quoted)

  # Messages

  # Most servers hold the model to the schema but do not show it.
  defp instruct(messages, schema) do
    rules =
      "Answer with one JSON object and nothing else. It must match this JSON schema: " <>
        JSON.encode(JSONSchema.closed(schema))

    case messages do
      [%{role: :system, content: system} = first | rest] ->
        [%{first | content: system <> "\n\n" <> rules} | rest]

      messages ->
        [%{role: :system, content: rules} | messages]
    end
  end

  defp repair(error, text) do
    said = if String.trim(text) == "", do: "(no answer)", else: String.slice(text, 0, 4_000)

    problem =
      "This cannot be used: #{Exception.message(error)}. Answer again, with one JSON object " <>
        "that matches the schema and nothing else."

    [%{role: :assistant, content: said}, %{role: :user, content: problem}]
  end

  defp add(nil, usage), do: usage
  defp add(usage, nil), do: usage
  defp add(one, other), do: Map.merge(one, other, fn _key, a, b -> a + b end)

  defp options do
    [
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      max_bytes: {"a number of bytes", &Options.positive?/1},
      constrain: {"a JSON schema", &is_map/1},
      read: {"a function of one argument", &is_function(&1, 1)},
      temperature: {"a number from 0", &(is_number(&1) and &1 >= 0)},
      max_tokens: {"a whole number from 1", &Options.positive?/1},
      extra: {"a map with texts as keys", &is_map/1},
      on_retry: {"a function of one argument", &is_function(&1, 1)}
    ]
  end
end
