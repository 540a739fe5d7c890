defmodule Skillbook.Model.Recording.JSONFile do
  @moduledoc false
  # Reads and writes the files of recordings.
  #
  # A request mostly begins with the messages of an earlier one, so `keep` names that request and
  # how many of its messages it repeats.

  alias Skillbook.Support.{JSON, ReadFile, UntilError}
  alias Skillbook.{Document, RecordingError}

  @version 1
  @max_bytes 64 * 1024 * 1024

  @doc "Returns the calls of a file, each with its whole request, and whether there were tools."
  @spec read(Path.t()) ::
          {:ok, %{calls: [map()], tools: boolean()}} | {:error, RecordingError.t()}
  def read(path) do
    with {:ok, text} <- ReadFile.read(path, @max_bytes),
         {:ok, %{"version" => @version, "calls" => calls} = file} when is_list(calls) <-
           JSON.decode(text),
         {:ok, calls} <- expand(calls) do
      {:ok, %{calls: calls, tools: file["tools"] == true}}
    else
      {:error, :enoent} -> {:error, %RecordingError{kind: :missing, path: path}}
      {:error, :efbig} -> invalid(path, "more than #{@max_bytes} bytes")
      {:error, reason} when is_atom(reason) -> invalid(path, :file.format_error(reason))
      {:error, %{__exception__: true} = error} -> invalid(path, Exception.message(error))
      {:error, text} -> invalid(path, text)
      {:ok, %{"version" => version}} -> invalid(path, "version #{inspect(version)}")
      {:ok, _other} -> invalid(path, "JSON without `version` and `calls`")
    end
  end

  defp invalid(path, text),
    do: {:error, %RecordingError{kind: :invalid, path: path, text: to_string(text)}}

  defp expand(calls) do
    calls
    |> Enum.with_index(1)
    |> UntilError.reduce([], fn {call, number}, done ->
      case call(call, done) do
        {:ok, call} -> {:ok, [call | done]}
        :error -> {:error, "a call #{number} that cannot be read"}
      end
    end)
    |> then(&with {:ok, done} <- &1, do: {:ok, Enum.reverse(done)})
  end

  # `done` has the calls before it, the last one first.
  defp call(%{"messages" => new, "options" => %{} = options, "answer" => answer} = call, done) do
    with {:ok, kept} <- kept(call["keep"], done),
         messages when is_list(messages) <- is_list(new) && kept ++ new,
         true <- Enum.all?(messages, &message?/1),
         true <- answer?(answer) do
      {:ok, %{"request" => %{"messages" => messages, "options" => options}, "answer" => answer}}
    else
      _ -> :error
    end
  end

  defp call(_call, _done), do: :error

  defp kept(nil, _done), do: {:ok, []}

  defp kept([number, count], done)
       when is_integer(number) and is_integer(count) and number in 1..length(done)//1 and
              count >= 0,
       do: {:ok, done |> Enum.at(-number) |> get_in(["request", "messages"]) |> Enum.take(count)}

  defp kept(_keep, _done), do: :error

  defp message?(message),
    do:
      match?(
        %{"role" => role, "content" => text} when is_binary(role) and is_binary(text),
        message
      )

  @reasons ~w(stop tool_calls length filtered other)

  defp answer?(%{"text" => text, "finish_reason" => reason} = answer) do
    is_binary(text) and reason in @reasons and calls?(answer["tool_calls"]) and
      usage?(answer["usage"])
  end

  defp answer?(_answer), do: false

  defp calls?(nil), do: true

  defp calls?(calls) when is_list(calls) do
    Enum.all?(calls, fn call ->
      is_map(call) and Enum.all?(~w(id name arguments), &is_binary(call[&1]))
    end)
  end

  defp calls?(_calls), do: false

  defp usage?(nil), do: true

  defp usage?(%{} = usage),
    do: Enum.all?(usage, fn {_name, count} -> is_integer(count) and count >= 0 end)

  defp usage?(_usage), do: false

  @doc "Adds a call to a file; the first one of a recorder replaces it."
  @spec add!(Path.t(), map(), %{model: String.t() | nil, tools: boolean()}, boolean()) :: :ok
  def add!(path, call, header, first?) do
    path = Path.expand(path)
    calls = if first?, do: [], else: calls!(path)
    text = text(calls ++ [call], header)
    File.mkdir_p!(Path.dirname(path))

    with {:error, error} <- Document.replace(Path.dirname(path), Path.basename(path), text),
         do: raise(error)

    :ok
  end

  defp calls!(path) do
    case read(path) do
      {:ok, %{calls: calls}} -> calls
      {:error, error} -> raise error
    end
  end

  defp text(calls, header) do
    lines =
      calls
      |> Enum.with_index()
      |> Enum.map_join(",\n", fn {call, index} -> lines(call, Enum.take(calls, index)) end)

    # A text with hidden characters shows them in a review.
    Skillbook.Support.Hidden.json("""
    {"version": #{@version}, "model": #{JSON.encode(header.model)}, "tools": #{header.tools},
     "calls": [
    #{lines}
    ]}
    """)
  end

  defp lines(%{"request" => request, "answer" => answer}, before) do
    messages = request["messages"]
    keep = keep(messages, before)
    new = if keep, do: Enum.drop(messages, List.last(keep)), else: messages
    own = Enum.map_join(new, ",\n", &("  " <> JSON.encode(&1)))
    keep = if keep, do: ~s("keep": #{JSON.encode(keep)}, ), else: ""

    """
    {#{keep}"messages": [
    #{own}
     ],
     "options": #{JSON.encode(request["options"])},
     "answer": #{JSON.encode(answer)}}\
    """
  end

  # The earlier request that shares most messages, if it shares any.
  defp keep(messages, before) do
    best =
      before
      |> Enum.with_index(1)
      |> Enum.map(fn {%{"request" => request}, number} ->
        [number, shared(request["messages"], messages)]
      end)
      |> Enum.max_by(&List.last/1, fn -> [0, 0] end)

    if List.last(best) > 0, do: best
  end

  defp shared([same | one], [same | other]), do: 1 + shared(one, other)
  defp shared(_one, _other), do: 0
end
