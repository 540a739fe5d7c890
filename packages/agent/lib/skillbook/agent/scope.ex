defmodule Skillbook.Agent.Scope do
  @moduledoc false
  # Decides the rights of a dispatched agent: the profile of its caller, narrowed to the named
  # skills that the caller sees.

  alias Skillbook.Support.UntilError
  alias Skillbook.{Entry, FlagError, Native, Profile, View}

  @dispatch "agent.dispatch"

  @doc """
  Narrows the view's profile to names, domains and globs over names; returns the names too.

  Globs and domains do not include `agent.dispatch`, which must be named. `writes: :delegate`
  becomes `:run`, since the agent is the one to which writes were delegated.
  """
  @spec narrow(View.t(), [String.t()]) ::
          {:ok, Profile.t(), [String.t()]} | {:error, Exception.t()}
  def narrow(%View{profile: profile} = view, skills) do
    candidates = for entry <- View.listed(view), entry.name != @dispatch, do: entry

    with {:ok, names} <- UntilError.map(skills, &resolve(view, candidates, &1)) do
      names = names |> List.flatten() |> Enum.uniq()
      writes = if profile.writes == :delegate, do: :run, else: profile.writes
      {:ok, %{Profile.narrow(profile, Enum.map(names, &escape/1)) | writes: writes}, names}
    end
  end

  defp resolve(view, candidates, skill) do
    case View.fetch(view, skill) do
      {:ok, %Entry{name: name}} -> {:ok, [name]}
      {:error, unknown} -> resolve_domain(candidates, skill, unknown)
    end
  end

  defp resolve_domain(candidates, domain, unknown) do
    case for %Entry{domain: ^domain, name: name} <- candidates, do: name do
      [] -> resolve_glob(candidates, domain, unknown)
      names -> {:ok, names}
    end
  end

  defp resolve_glob(candidates, glob, unknown) do
    case Native.globs_filter([glob], Enum.map(candidates, & &1.name)) do
      {:ok, []} -> {:error, unknown}
      {:ok, names} -> {:ok, names}
      {:error, {_glob, reason}} -> invalid(glob, reason)
    end
  end

  defp invalid(glob, reason) do
    expected = "names of skills, domains, or globs over names (#{reason})"
    FlagError.invalid("skills", glob, expected, "tasks.search")
  end

  # Names may contain characters of globs.
  defp escape(name), do: String.replace(name, ~r/[\\?*\[\]{}]/, "[\\0]")
end
