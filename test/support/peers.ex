defmodule Skillbook.Peers do
  @moduledoc false
  # Other virtual machines with the same code, controlled over their standard input and output, so
  # that they can be nodes of a cluster or know nothing of distribution.

  @doc """
  Starts one, which ends with the test.

  `name: :a` makes it a node; without a name it has no distribution.
  """
  def start(options \\ []) do
    paths = Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
    # Nodes register with it.
    if options[:name], do: {_, 0} = System.cmd("epmd", ["-daemon"])

    named =
      case options[:name] do
        nil ->
          %{}

        name ->
          unique = :"#{name}_#{System.pid()}_#{System.unique_integer([:positive])}"
          %{name: unique, host: ~c"127.0.0.1", longnames: true}
      end

    arguments = paths ++ [~c"-setcookie", ~c"skillbook_tests", ~c"+fnu"]
    start = Map.merge(%{connection: :standard_io, args: arguments, wait_boot: 60_000}, named)

    {:ok, peer} =
      ExUnit.Callbacks.start_supervised(%{
        id: make_ref(),
        start: {__MODULE__, :start_link, [start]},
        restart: :temporary
      })

    # The packages of this one.
    for name <- Skillbook.Test.Checkout.applications(),
        do: {:ok, _} = call(peer, :application, :ensure_all_started, [name])

    peer
  end

  @doc false
  def start_link(options) do
    case :peer.start_link(options) do
      {:ok, peer, _node} -> {:ok, peer}
      other -> other
    end
  end

  @doc "Calls a function there. How long it may take says the limit of the test."
  def call(peer, module, function, arguments),
    do: :peer.call(peer, module, function, arguments, :infinity)

  @doc "Starts a book there, which ends with the other virtual machine."
  def start_book(peer, options), do: :ok = call(peer, __MODULE__, :hold, [options])

  @doc false
  # The process of a call exits at its end, together with linked processes.
  def hold(options) do
    caller = self()

    pid =
      spawn(fn ->
        send(caller, {self(), Skillbook.start_link(options)})
        Process.sleep(:infinity)
      end)

    receive do
      {^pid, {:ok, _book}} -> :ok
      {^pid, {:error, error}} -> {:error, error}
    end
  end

  @doc """
  Calls a function of `Skillbook.Store` there, with a view of the book in front.

  A view is a reference of its own virtual machine, so it is made there.
  """
  def store(peer, book, function, arguments),
    do: call(peer, __MODULE__, :with_view, [Skillbook.Store, function, book, arguments])

  @doc "The text of an entry there, or nil."
  def read(peer, book, name) do
    case call(peer, __MODULE__, :with_view, [Skillbook.View, :fetch, book, [name]]) do
      {:ok, entry} -> entry.body
      {:error, _} -> nil
    end
  end

  @doc false
  def with_view(module, function, book, arguments),
    do: apply(module, function, [Skillbook.view(book) | arguments])

  @doc "Makes nodes know each other."
  def connect(peer, other) do
    true = call(peer, Node, :connect, [call(other, Node, :self, [])])
  end
end
