defmodule Skillbook.Executor do
  @moduledoc """
  Runs what a command calls.

  An entry without a handler gives its body back, as a template that the model follows. A handler runs in a supervised
  process with a time limit; whatever becomes of it, the caller gets a result or an error.
  """

  require Logger

  alias Skillbook.{Book, Context, Entry, HandlerError, Result, RoutedCommand, Strict}

  @default_timeout 30_000

  @doc """
  Runs a routed command.

  Errors that a handler gives come back as they are, a text as a `RuntimeError`. Of a crash, a missing handler, a time
  limit that is over and an answer that is none, the error is a `Skillbook.HandlerError`.

  ## Options

    * `:timeout` - the time limit in milliseconds; the book's, or #{@default_timeout}, if it is left out

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, routed} = Skillbook.Router.route(view, "haiku")
      iex> context = Skillbook.Executor.context(view, routed, now: ~U[2026-01-01 08:00:00Z])
      iex> {:ok, result} = Skillbook.Executor.execute(routed, context)
      iex> {result.status, result.content}
      {:template, "Write three lines of five, seven and five syllables."}
  """
  @spec execute(RoutedCommand.t(), Context.t(), timeout: pos_integer()) ::
          {:ok, Result.t()} | {:error, Exception.t()}
  def execute(routed, context, options \\ []) do
    with :ok <- Strict.check(context.view, routed), do: run(routed, context, options)
  end

  defp run(%RoutedCommand{entry: %Entry{handler: nil} = entry}, _context, _options) do
    metadata = %{path: entry.path, activates: [Entry.activation(entry)]}
    {:ok, %Result{status: :template, content: String.trim(entry.body), metadata: metadata}}
  end

  defp run(%RoutedCommand{entry: entry} = routed, %Context{} = context, options) do
    timeout = options[:timeout] || book_value(context.book, :timeout, @default_timeout)

    with {:ok, module} <- handler(entry) do
      case supervised(context.book, timeout, fn -> module.execute(routed.command.flags, context) end) do
        {:ok, answer} -> answer(answer, entry)
        {:exit, reason} -> {:error, failed(:crash, entry, reason: reason)}
        nil -> {:error, failed(:timeout, entry, timeout: timeout)}
      end
    end
  end

  @doc """
  The context of a call.

  ## Options

    * `:now` - the time of the call, UTC; the clock's if it is left out
    * `:assigns` - a map for the handler; empty if it is left out
  """
  @spec context(Skillbook.View.t(), RoutedCommand.t(), keyword()) :: Context.t()
  def context(view, routed, options \\ []) do
    book = if view.book, do: Book.fetch!(view.book)

    %Context{
      book: view.book,
      view: view,
      profile: view.profile,
      entry: routed.entry,
      command: routed.command,
      sql: book && Book.sql(book),
      write_to: book && book.write_to,
      now: Keyword.get_lazy(options, :now, &DateTime.utc_now/0),
      assigns: Keyword.get(options, :assigns, %{})
    }
  end

  # Nothing in a file ever becomes a new atom: the modules of all loaded applications have theirs.
  defp handler(entry) do
    module = String.to_existing_atom("Elixir." <> String.replace_prefix(entry.handler, "Elixir.", ""))

    if Code.ensure_loaded?(module) and function_exported?(module, :execute, 2),
      do: {:ok, module},
      else: {:error, failed(:missing, entry)}
  rescue
    error in [ArgumentError, SystemLimitError] -> {:error, failed(:missing, entry, reason: error)}
  end

  # The process is not linked, so that a crash does not reach the caller; but it ends when the caller does.
  defp supervised(book, timeout, fun) do
    caller = self()
    supervisor = if book, do: Book.tasks(book), else: Skillbook.Tasks

    task =
      Task.Supervisor.async_nolink(supervisor, fn ->
        end_with(caller)
        fun.()
      end)

    Task.yield(task, timeout) || Task.shutdown(task, :brutal_kill)
  catch
    # The book stopped meanwhile.
    :exit, reason -> {:exit, reason}
  end

  defp end_with(caller) do
    task = self()

    spawn(fn ->
      task_ref = Process.monitor(task)
      caller_ref = Process.monitor(caller)

      receive do
        {:DOWN, ^task_ref, :process, _, _} -> :ok
        {:DOWN, ^caller_ref, :process, _, _} -> Process.exit(task, :kill)
      end
    end)
  end

  defp answer({:ok, %Result{status: status, content: content} = result} = answer, entry)
       when status in [:ok, :error, :template, :help] do
    if is_binary(content) and String.valid?(content),
      do: {:ok, result},
      else: {:error, failed(:bad_return, entry, reason: answer)}
  end

  defp answer({:ok, text} = answer, entry) when is_binary(text) do
    if String.valid?(text),
      do: {:ok, Result.ok(text)},
      else: {:error, failed(:bad_return, entry, reason: answer)}
  end

  defp answer({:error, text} = answer, entry) when is_binary(text) do
    if String.valid?(text),
      do: {:error, RuntimeError.exception(text)},
      else: {:error, failed(:bad_return, entry, reason: answer)}
  end

  defp answer({:error, error}, entry) when is_exception(error) do
    # A message can fail as well: it is the handler's code.
    if String.valid?(Exception.message(error)),
      do: {:error, error},
      else: {:error, failed(:bad_return, entry, reason: error)}
  end

  defp answer(other, entry), do: {:error, failed(:bad_return, entry, reason: other)}

  defp failed(kind, entry, fields \\ []) do
    error = struct!(HandlerError, [kind: kind, name: entry.name, handler: entry.handler] ++ fields)
    Logger.error(fn -> log(error) end, skill: entry.name)
    error
  end

  # The model does not see this part.
  defp log(%{kind: :crash} = error), do: "skill #{error.name} crashed: #{Exception.format_exit(error.reason)}"

  defp log(%{kind: :timeout} = error),
    do: "skill #{error.name} took longer than #{error.timeout} ms and was stopped"

  defp log(%{kind: :missing} = error) do
    "skill #{error.name}: expected its handler #{inspect(error.handler)} to be a module with execute/2"
  end

  defp log(%{kind: :bad_return} = error) do
    "skill #{error.name}: expected {:ok, text}, {:ok, %Skillbook.Result{}}, {:error, text} or {:error, exception}, " <>
      "got: #{inspect(error.reason, limit: 20, printable_limit: 500)}"
  end

  defp book_value(nil, _key, default), do: default
  defp book_value(book, key, _default), do: Map.fetch!(Book.fetch!(book), key)
end
