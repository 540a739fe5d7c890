defmodule Skillbook.Approval.Pending do
  @moduledoc false
  # Stores a call for which the `:ask` callback answered `:pending`.

  alias Skillbook.Approval
  alias Skillbook.Approval.{Assigns, Notice, Rights, Table}

  alias Skillbook.{
    Book,
    Command,
    Context,
    HandlerError,
    PolicyError,
    Profile,
    RoutedCommand,
    SetupError,
    SQL,
    View
  }

  # Bytes stored of the words of a call, as JSON.
  @max_words 100_000

  @doc "Stores a call, or says why it cannot wait."
  @spec store(RoutedCommand.t(), Context.t(), Command.t(), String.t()) ::
          {:ok, Approval.t()} | {:error, Exception.t()}
  def store(routed, context, written, ref) do
    with {:ok, sql} <- sql(routed, context),
         book = Book.fetch!(context.book),
         {:ok, rights} <- rights(book, context, routed),
         {:ok, assigns} <- assigns(routed, context),
         {:ok, words} <- words(routed, written) do
      asked_at = DateTime.truncate(Book.now(book), :second)

      call = %{
        ref: ref,
        profile: context.profile.id,
        tenant: Profile.home(context.profile),
        skill: routed.entry.name,
        hash: hash(context.view, routed.entry),
        words: words,
        rights: rights,
        assigns: assigns,
        made_by: context.by,
        asked_at: asked_at,
        expires_at: DateTime.add(asked_at, book.of_parts.approvals[:expire], :second)
      }

      insert(sql, book, call, context.agent[:run])
    end
  end

  defp sql(routed, context) do
    case context.sql do
      nil ->
        {:error, %SetupError{command: routed.name, option: :store}}

      sql ->
        if SQL.in_transaction?(sql),
          do: {:error, handler_error(:in_transaction, routed, nil)},
          else: {:ok, sql}
    end
  end

  defp rights(book, context, routed) do
    with :error <- Rights.encode(book, context.profile) do
      text = "its profile is not one of the book's, so nobody could approve it later"
      {:error, %PolicyError{kind: :unstorable, name: routed.name, text: text}}
    end
  end

  defp assigns(routed, context) do
    with {:error, text} <- Assigns.encode(context.call_assigns),
         do: {:error, %PolicyError{kind: :unstorable, name: routed.name, text: text}}
  end

  # Lists read the words of all calls, and a reply may have megabytes.
  # The call runs from its line, and people decide by the flags that its handler gets.
  defp words(%{command: command} = routed, written) do
    words = Table.words(line(written), command.flags)

    if byte_size(words) <= @max_words do
      {:ok, words}
    else
      text = "expected a command of at most #{@max_words} bytes, got #{byte_size(words)}"
      {:error, %PolicyError{kind: :unstorable, name: routed.name, text: text}}
    end
  end

  defp insert(sql, book, call, run) do
    with {:ok, over} <-
           Table.sweep(sql, book.name, call.asked_at, book.of_parts.approvals[:lease]),
         Enum.each(over, &Notice.send/1),
         :ok <-
           Table.insert(sql, call, book.of_parts.approvals[:max_waiting]),
         {:ok, %{approval: approval}} <- Table.fetch(sql, book.name, call.ref) do
      Notice.send(approval, run)
      {:ok, approval}
    else
      {:error, :full} ->
        max = book.of_parts.approvals[:max_waiting]
        {:error, %PolicyError{kind: :waiting, name: call.skill, text: "#{max}"}}

      {:error, :taken} ->
        text = "its reference #{call.ref} is in use already"
        {:error, %PolicyError{kind: :unstorable, name: call.skill, text: text}}

      {:error, %SQL.Error{} = error} ->
        {:error, %HandlerError{kind: :unrecorded, name: call.skill, reason: error}}
    end
  end

  defp handler_error(kind, routed, reason) do
    %HandlerError{kind: kind, name: routed.name, handler: routed.entry.handler, reason: reason}
  end

  # Placeholders of a reply are not in the command's own text.
  defp line(%Command{placeholders: [], raw: raw}), do: raw
  defp line(command), do: Command.line(command)

  @doc "A hash of everything that decides what a call of the entry does, apart from code."
  @spec hash(View.t(), Skillbook.Entry.t()) :: String.t()
  def hash(view, entry) do
    frontmatter =
      case View.frontmatter(view, entry.name) do
        {:ok, text} -> text
        {:error, _} -> ""
      end

    parts = [entry.name, entry.source, Atom.to_string(entry.trust), frontmatter, entry.body]
    # The length keeps the parts apart.
    parts = for part <- parts, do: [Integer.to_string(byte_size(part)), ":", part]
    Base.encode16(:crypto.hash(:sha256, parts), case: :lower)
  end
end
