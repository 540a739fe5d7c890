defmodule Skillbook.Tools.Name do
  @moduledoc false
  # Names of tools are `^[a-zA-Z0-9_-]{1,64}$` at all vendors. A name of usual characters keeps them, with `__` for each dot,
  # which can be read back. Every other name is cut to those characters and ends in a part of its hash, which cannot, so it is
  # looked for in the view. Such a name depends on its entry's alone: it tells of no other entry and outlives reloads.
  #
  # A page may choose its own with `tool`. It counts where the view finds the entry by it as by an alias, so that a tool and
  # a command of the same name are the same, and two entries never have one name.

  alias Skillbook.{Entry, View}

  @longest 64
  @hash 16
  @get_skill "get_skill"

  @doc """
  The tool's name of an entry's.

      iex> Skillbook.Tools.Name.from("tasks.search")
      "tasks__search"
      iex> Skillbook.Tools.Name.from("notes/dinner plans")
      "notes_dinner_plans-ead3dab56d289268"
  """
  @spec from(String.t()) :: String.t()
  def from(name) do
    tool = String.replace(name, ".", "__")
    if plain?(name) and byte_size(tool) <= @longest, do: tool, else: hashed(name)
  end

  @doc """
  The tool's name of an entry of a view: the one that its page chose, or else `from/1` of its name.

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

  # No other entry's `from/1` gives it.
  defp chosen?(tool) do
    is_binary(tool) and byte_size(tool) <= @longest and tool =~ ~r/\A[a-zA-Z0-9_-]+\z/ and
      plain?(tool) and
      tool != @get_skill
  end

  @doc "The entry's name that a tool stands for in a view; where there is none, the name that comes closest."
  @spec resolve(View.t(), String.t()) :: String.t()
  def resolve(view, tool) do
    dotted = String.replace(tool, "__", ".")

    cond do
      from(dotted) == tool ->
        dotted

      hash?(tool) ->
        Enum.find_value(View.entries(view), tool, &if(from(&1.name) == tool, do: &1.name))

      # Models also write the names that they read in the prompt.
      true ->
        tool
    end
  end

  # `a_.b` and `a._b` would both be `a___b`.
  defp plain?(name) do
    name =~ ~r/\A[a-zA-Z0-9_.-]+\z/ and not (name =~ ~r/__|\.\.|_\.|\._|\A\.|\.\z/) and
      not hash?(name)
  end

  defp hash?(name), do: name =~ ~r/-[0-9a-f]{#{@hash}}\z/

  defp hashed(name) do
    hash = :sha256 |> :crypto.hash(name) |> Base.encode16(case: :lower) |> binary_part(0, @hash)
    kept = String.replace(name, ~r/[^a-zA-Z0-9_-]+/, "_")
    "#{binary_part(kept, 0, min(byte_size(kept), @longest - @hash - 1))}-#{hash}"
  end
end
