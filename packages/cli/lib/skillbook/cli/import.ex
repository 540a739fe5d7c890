defmodule Skillbook.CLI.Import do
  @moduledoc false
  # `skillbook import`: imports skills into the store, with `Skillbook.Package.into_store/3`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Session, Terminal}
  alias Skillbook.{Package, Store}

  @label "imported"
  # Names in the message about hidden skills.
  @max_listed 3

  @impl true
  def switches, do: Packages.source_switches()

  @impl true
  def args([_source | _] = args), do: {:ok, args}

  def args([]),
    do: {:error, "`import` expects a folder, an archive, a git repository or a website"}

  @impl true
  def run(%{args: [source | names], flags: flags} = options) do
    if flags[:all] && names != [] do
      Terminal.usage_error("`import` takes names or --all, got both", "import --help")
    else
      Session.with_book(options, :write, &import_skills(&1, source, names, options))
    end
  end

  # The profile of an import can see the imported skills.
  defp view(book, options) do
    profile = Session.profile(options)
    Skillbook.view(book, %{profile | grants: [@label | profile.grants]})
  end

  defp import_skills(book, source, names, options) do
    keys = [:branch, :tag, :commit, :path, :strict, :force]
    accept = [labels: [@label], accept: Packages.accept(options)]

    run = fn given ->
      given = Packages.chosen(names, options) ++ accept ++ given
      Package.into_store(view(book, options), source, given)
    end

    Packages.run(options, "import", keys, run, &tell_hidden(book, options, &1))
  end

  # Otherwise somebody who lists the skills next would miss them.
  defp tell_hidden(book, options, outcomes) do
    view = Session.view(book, options)

    hidden =
      for %{action: action, name: name} <- outcomes,
          action != :failed,
          match?({:error, _}, Store.fetch(view, name)),
          do: name

    if hidden != [] do
      Terminal.complain(
        "the profile #{options.profile} does not see #{listed(hidden)}, which " <>
          "#{if match?([_], hidden), do: "has", else: "have"} the label #{@label}; " <>
          "add --grant #{@label}, or in an application `grants: [\"#{@label}\"]` to the profile"
      )
    end
  end

  defp listed(names) do
    {first, more} = Enum.split(names, @max_listed)
    listed = Enum.join(first, ", ")
    if more == [], do: listed, else: "#{listed} and #{length(more)} more"
  end
end
