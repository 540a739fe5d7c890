defmodule Skillbook.CLI.List do
  @moduledoc false
  # `skillbook list`: lists entries, or the diagnostics of loading.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Native

  @impl true
  def switches do
    page = [limit: {:number, 1, 1_000}, after: :string]
    [source: :keep, domain: :keep] ++ page ++ [json: :boolean, diagnostics: :boolean]
  end

  @impl true
  def args(words), do: {:ok, words}

  @impl true
  def run(%{flags: flags} = options) do
    if flags[:diagnostics] && filters(options) != [],
      do: Terminal.usage_error("--diagnostics takes no words or filters", "list --help"),
      else: Session.with_book(options, :read, &list(&1, options), [:problems, :offers])
  end

  defp filters(%{flags: flags} = options),
    do: options.args ++ Keyword.take(flags, [:source, :domain, :limit, :after])

  defp list(book, %{flags: flags} = options) do
    if flags[:diagnostics] do
      book |> Skillbook.diagnostics() |> Native.report_loading(flags[:json] || false)
    else
      Native.report_list(
        Session.view(book, options).ref,
        {options.args, Keyword.get_values(flags, :source), Keyword.get_values(flags, :domain)},
        {flags[:limit], flags[:after]},
        flags[:json] || false,
        Terminal.new(options.color)
      )
    end
    |> Terminal.printed()
  end
end
