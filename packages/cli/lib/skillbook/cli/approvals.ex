defmodule Skillbook.CLI.Approvals do
  @moduledoc false
  # `skillbook approvals`: lists the calls that wait for an approval, and decides about them.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Arguments, ModelFlags, Run, Schedule, Session, Terminal}
  alias Skillbook.{Approval, Part}

  @impl true
  def switches do
    [status: {:some_of, Approval.statuses()}, by: :string, book: :string, json: :boolean] ++
      Keyword.take(Arguments.inputs([:approvals]), [:limit, :after]) ++
      Arguments.inputs([:approve]) ++ ModelFlags.switches()
  end

  @impl true
  def args(args), do: Arguments.action(args, ~w(show approve deny))

  @impl true
  def run(%{args: [action | ref]} = options) do
    with {:ok, model} <- model(options.flags),
         {:ok, book} <- book(options.flags[:book]) do
      act = fn book -> act(action, book, ref, model, options) end
      agent = if model, do: [model: model]
      mode = if action in ["list", "show"], do: :read, else: {:decide, agent}
      if book, do: act.(book), else: Session.with_book(options, mode, act)
    else
      {:error, message} -> Terminal.usage_error(message, "approvals --help")
    end
  end

  defp model(flags) do
    given? = Enum.any?(Keyword.keys(ModelFlags.switches()), &flags[&1])
    needed? = flags[:resume] == true and flags[:book] == nil
    if given? or needed?, do: ModelFlags.model("approvals", flags), else: {:ok, nil}
  end

  # A running book of the application. Only existing names can be one, so no atom is made.
  defp book(nil), do: {:ok, nil}

  defp book(name) do
    book = String.to_existing_atom("Elixir." <> String.replace_prefix(name, "Elixir.", ""))
    if Skillbook.Book.find(book), do: {:ok, book}, else: no_book(name)
  rescue
    _error in [ArgumentError, SystemLimitError] -> no_book(name)
  end

  defp no_book(name), do: {:error, "--book expects the name of a running book, got: #{name}"}

  defp act("list", book, [], _model, options) do
    status = Keyword.get_values(options.flags, :status)
    status = if status == [], do: [], else: [status: status]

    input = status ++ Keyword.take(options.flags, [:limit, :after])

    with {:ok, approvals} <- Skillbook.approvals(whose(book, options), input) do
      if options.flags[:json],
        do: :approvals |> Part.json(approvals) |> Terminal.put_json(),
        else: put_list(approvals, options)
    end
  end

  defp act("show", book, [ref], _model, options) do
    with {:ok, approval} <- Part.call(:approval, [whose(book, options), ref, []]),
         do: put(approval, options)
  end

  defp act(action, book, [ref], model, options) do
    flags = options.flags

    given = Schedule.by(flags) ++ [resume: resume(model, flags)]

    decided =
      if action == "approve",
        do: Skillbook.approve(book, ref, given ++ Keyword.take(flags, [:force])),
        else: Skillbook.deny(book, ref, given)

    with {:ok, approval} <- decided do
      put(approval, options)
      if approval.status == :failed, do: 1, else: :ok
    end
  end

  defp resume(model, flags) do
    cond do
      flags[:resume] != true -> false
      model == nil -> true
      true -> [model: model]
    end
  end

  defp whose(book, options),
    do: if(options.profile_given, do: Session.view(book, options), else: book)

  # Output

  defp put_list([], _options), do: Terminal.put("No command waits for an approval.")

  defp put_list(approvals, options) do
    terminal = Terminal.new(options.color)

    approvals
    |> Enum.map_intersperse("\n", fn approval ->
      [
        Terminal.style(terminal, :bright, Terminal.line(approval.command)),
        "\n  ",
        Terminal.line("#{approval.ref}, #{state(approval)}, of the profile #{approval.profile}")
      ]
    end)
    |> Terminal.put()
  end

  defp state(%{status: :pending} = approval),
    do: "waits until #{Terminal.time(approval.expires_at)}"

  defp state(%{by: nil} = approval),
    do: "#{approval.status}, called on #{Terminal.time(approval.asked_at)}"

  defp state(approval),
    do: "#{approval.status}, decided by #{approval.by} on #{Terminal.time(approval.decided_at)}"

  defp put(approval, %{flags: flags} = options) do
    if flags[:json] do
      :approve |> Part.json(approval) |> Terminal.put_json()
    else
      put_list([approval], options)
      if approval.reason, do: Terminal.put(["  ", Terminal.line("reason: " <> approval.reason)])
      terminal = Terminal.new(options.color)
      if approval.result, do: Terminal.put(Run.outcome(terminal, approval.result))
      if approval.run, do: Terminal.put(["\n", Terminal.safe(approval.run.text)])
      :ok
    end
  end
end
