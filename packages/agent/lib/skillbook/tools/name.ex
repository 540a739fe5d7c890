defmodule Skillbook.Tools.Name do
  @moduledoc false
  # Converts between names of entries and names of tools, which all vendors limit to
  # `^[a-zA-Z0-9_-]{1,64}$`, and Gemini to those that begin with a letter or `_`.
  #
  # Dots become `__`, which can be converted back. Other names lose the other characters and end
  # with a part of their hash; such a name is looked up in the view. It depends only on the name
  # of its entry, so it reveals no other entry and does not change on reloads.
  #
  # A page may set the name with `tool`. It is used if it is an alias of the entry in the view, so
  # a tool and a command of the same name are the same, and no two entries share a name.

  alias Skillbook.{Entry, View}

  @max_length 64
  @hash_length 16
  # The tools that are no entries.
  @own ["get_skill", "run_command"]

  @doc """
  Returns the name of the tool for the name of an entry.

      iex> Skillbook.Tools.Name.from("tasks.search")
      "tasks__search"
      iex> Skillbook.Tools.Name.from("notes/dinner plans")
      "notes_dinner_plans-ead3dab56d289268"
  """
  @spec from(String.t()) :: String.t()
  def from(name) do
    tool = String.replace(name, ".", "__")
    if plain?(name) and byte_size(tool) <= @max_length, do: tool, else: hashed(name)
  end

  @doc """
  Returns the name of the tool for an entry: the name that its page sets, or `from/1` of its name.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> Skillbook.Tools.Name.of(view, Skillbook.View.fetch!(view, "tasks.get"))
      "tasks__get"
  """
  @spec of(View.t(), Entry.t()) :: String.t()
  def of(view, %Entry{name: name, data: data, aliases: aliases, trust: trust}) do
    with %{"tool" => tool} when trust != :low <- data,
         true <- tool in aliases and chosen?(tool),
         {:ok, %Entry{name: ^name}} <- View.fetch(view, tool) do
      tool
    else
      _ -> from(name)
    end
  end

  # Whether `from/1` returns it for no other entry.
  defp chosen?(tool) do
    is_binary(tool) and byte_size(tool) <= @max_length and not String.contains?(tool, ".") and
      plain?(tool)
  end

  @doc "Returns the name of the entry of a tool, or a name for the error if there is none."
  @spec resolve(View.t(), String.t()) :: String.t()
  def resolve(_view, tool) when byte_size(tool) > @max_length, do: tool

  def resolve(view, tool) do
    dotted = String.replace(tool, "__", ".")

    cond do
      from(dotted) == tool ->
        dotted

      hash?(tool) ->
        Enum.find_value(View.entries(view), tool, &if(from(&1.name) == tool, do: &1.name))

      # Models also use the names of entries, which they read in the prompt.
      true ->
        tool
    end
  end

  # `a_.b` and `a._b` would both be `a___b`.
  defp plain?(name) do
    name =~ ~r/\A[a-zA-Z_][a-zA-Z0-9_.-]*\z/ and name not in @own and
      not (name =~ ~r/__|\.\.|_\.|\._|\A\.|\.\z/) and
      not hash?(name)
  end

  defp hash?(name), do: name =~ ~r/-[0-9a-f]{#{@hash_length}}\z/

  @doc """
  Returns what is left of a name that a model invented, as a name that vendors accept.

      iex> Enum.map(["tasks.find", "", "9 lives"], &Skillbook.Tools.Name.valid/1)
      ["tasks_find", "_", "_9_lives"]
  """
  @spec valid(String.t()) :: String.t()
  def valid(name), do: name |> plain() |> binary_slice(0, @max_length)

  defp hashed(name) do
    hash =
      :sha256 |> :crypto.hash(name) |> Base.encode16(case: :lower) |> binary_part(0, @hash_length)

    "#{name |> plain() |> binary_slice(0, @max_length - @hash_length - 1)}-#{hash}"
  end

  defp plain(name) do
    plain = String.replace(name, ~r/[^a-zA-Z0-9_-]+/, "_")
    if plain =~ ~r/\A[a-zA-Z_]/, do: plain, else: "_" <> plain
  end
end
