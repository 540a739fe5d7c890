defmodule Skillbook.Agent.Scope do
  @moduledoc false
  # The rights of an agent that is dispatched: those of whoever dispatches it, for the skills that they named and see.

  alias Skillbook.Support.Options
  alias Skillbook.{Entry, FlagError, Native, Profile, View}

  @dispatch "agent.dispatch"

  @doc """
  The profile of an agent: the same with the skills that the names, domains and globs stand for. `agent.dispatch` has to be
  named itself.

  What is to be handed to an agent runs there, so its `:writes` is `:run` where it was `:delegate`.
  """
  @spec narrow(View.t(), [String.t()]) ::
          {:ok, Profile.t(), [String.t()]} | {:error, Exception.t()}
  def narrow(%View{profile: profile} = view, skills) do
    listed =
      for entry <- View.entries(view),
          not entry.hidden_from_model,
          entry.name != @dispatch,
          do: entry

    with {:ok, found} <- Options.each(skills, &find(view, listed, &1)) do
      names = found |> List.flatten() |> Enum.uniq()
      writes = if profile.writes == :delegate, do: :run, else: profile.writes
      {:ok, %{Profile.narrow(profile, Enum.map(names, &literal/1)) | writes: writes}, names}
    end
  end

  defp find(view, listed, asked) do
    case View.fetch(view, asked) do
      {:ok, %Entry{name: name}} -> {:ok, [name]}
      {:error, unknown} -> several(listed, asked, unknown)
    end
  end

  defp several(listed, asked, unknown) do
    case for %Entry{domain: ^asked, name: name} <- listed, do: name do
      [] -> matching(listed, asked, unknown)
      names -> {:ok, names}
    end
  end

  defp matching(listed, glob, unknown) do
    case Native.globs_filter([glob], Enum.map(listed, & &1.name)) do
      {:ok, []} -> {:error, unknown}
      {:ok, names} -> {:ok, names}
      {:error, {_glob, reason}} -> {:error, bad(glob, reason)}
    end
  end

  defp bad(glob, reason) do
    expected = "names of skills, domains, or globs over names (#{reason})"

    %FlagError{
      kind: :invalid,
      flag: "skills",
      value: glob,
      expected: expected,
      example: "tasks.search"
    }
  end

  # A name may have what means something in a glob.
  defp literal(name), do: String.replace(name, ~r/[\\?*\[\]{}]/, "[\\0]")
end
