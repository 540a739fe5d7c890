defmodule Skillbook.Support.Outline do
  @moduledoc false
  # Describes values of handlers and callbacks for log lines, without what they hold: a value may
  # have the flags of a command, or assigns.

  # The elements of a tuple that are described, and how deep.
  @max_elements 4
  @max_depth 3

  @doc """
  Describes a value by its type; atoms are shown.

      iex> Skillbook.Support.Outline.text({:error, %{"password" => "secret"}})
      "{:error, a map}"
      iex> Skillbook.Support.Outline.text(~D[2026-03-01])
      "a Date"
  """
  @spec text(term()) :: String.t()
  def text(value), do: text(value, @max_depth)

  defp text(atom, _depth) when is_atom(atom), do: inspect(atom)
  defp text(%module{}, _depth), do: "a #{inspect(module)}"
  defp text(map, _depth) when is_map(map), do: "a map"
  defp text(list, _depth) when is_list(list), do: "a list"
  defp text(text, _depth) when is_binary(text), do: "a text"
  defp text(number, _depth) when is_number(number), do: "a number"
  defp text(function, _depth) when is_function(function), do: "a function"
  defp text(pid, _depth) when is_pid(pid), do: "a pid"
  defp text(reference, _depth) when is_reference(reference), do: "a reference"
  defp text(tuple, 0) when is_tuple(tuple), do: "a tuple"

  defp text(tuple, depth) when is_tuple(tuple) do
    {first, rest} = tuple |> Tuple.to_list() |> Enum.split(@max_elements)
    more = if rest == [], do: [], else: ["…"]
    "{" <> Enum.join(Enum.map(first, &text(&1, depth - 1)) ++ more, ", ") <> "}"
  end

  defp text(_other, _depth), do: "another term"

  @doc """
  Describes the reason of a crash as `Exception.format_exit/1` does, without values: the exception
  with its message, what was thrown, or the reason of an exit.

      iex> Skillbook.Support.Outline.crash({:bad, %{"password" => "secret"}})
      "exit: {:bad, a map}"
      iex> Skillbook.Support.Outline.crash({:timeout, {GenServer, :call, [:server, "secret"]}})
      "exited in: GenServer.call/2, :timeout"
  """
  @spec crash(term()) :: String.t()
  def crash({{:nocatch, value}, stack}) when is_list(stack),
    do: "throw: #{text(value)}\n" <> Exception.format_stacktrace(stack)

  def crash({error, stack}) when is_exception(error) and is_list(stack),
    do: Exception.format_exit({without_term(error), stack})

  def crash({reason, {module, function, arguments}})
      when is_atom(module) and is_atom(function) and is_list(arguments),
      do: "exited in: #{inspect(module)}.#{function}/#{length(arguments)}, #{text(reason)}"

  def crash(reason) when is_atom(reason), do: Exception.format_exit(reason)
  def crash(reason), do: "exit: #{text(reason)}"

  # Errors of matches, such as `MatchError` and `KeyError`, show the whole value. One with a text
  # of its own does not.
  defp without_term(%{term: term, message: message} = error) when is_nil(message),
    do: %{error | term: text(term)}

  defp without_term(%{message: _} = error), do: error
  defp without_term(%{term: term} = error), do: %{error | term: text(term)}
  defp without_term(error), do: error
end
