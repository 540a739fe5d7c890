defmodule Skillbook.TestHandlers do
  @moduledoc false
  # Handlers that misbehave, and one that does not.

  for {name, body} <- [
        Text: quote(do: {:ok, "flags: #{inspect(var!(flags))}"}),
        Raise: quote(do: raise("secret #{inspect(var!(flags))}")),
        Throw: quote(do: throw({:secret, var!(flags)})),
        Exit: quote(do: exit({:secret, var!(flags)})),
        Kill: quote(do: Process.exit(self(), :kill)),
        Hang: quote(do: Process.sleep(:infinity)),
        Nonsense: quote(do: {:fine, var!(flags)}),
        NotText: quote(do: {:ok, :atom}),
        NotUtf8: quote(do: {:ok, <<255, var!(flags)["x"] || 0>>}),
        ErrorText: quote(do: {:error, "no room on #{Map.get(var!(flags), "day", "Monday")}"}),
        ErrorStruct:
          quote(
            do: {:error, %Skillbook.NotFoundError{kind: "room", id: "R-1", find: "rooms.list"}}
          ),
        ErrorResult: quote(do: {:ok, %Skillbook.Result{status: :error, content: "no"}}),
        NoMetadata: quote(do: {:ok, %Skillbook.Result{status: :ok, content: "x", metadata: nil}}),
        Broken: quote(do: {:ok, %Skillbook.Result{status: :odd, content: "x"}})
      ] do
    defmodule Module.concat(__MODULE__, name) do
      @moduledoc false
      @behaviour Skillbook.Handler
      @impl true
      def execute(flags, _context) do
        _ = flags

        unquote(
          Macro.prewalk(body, fn
            {:var!, _, [{:flags, _, _}]} -> quote(do: var!(flags))
            other -> other
          end)
        )
      end
    end
  end

  defmodule Picky do
    @moduledoc false
    @behaviour Skillbook.Handler
    # Takes only flags that are as it likes them.
    @impl true
    def execute(%{"to" => to}, _context), do: {:ok, to}
  end

  defmodule BadMessage do
    @moduledoc false
    # An error with a failing message.
    defexception [:how]

    @impl true
    def message(%{how: :throw}), do: throw(:secret)
    def message(%{how: :exit}), do: exit(:secret)
    def message(%{how: :hang}), do: Process.sleep(:infinity)
  end

  defmodule Call do
    @moduledoc false
    @behaviour Skillbook.Handler
    # Runs the function of the test.
    @impl true
    def execute(flags, context), do: context.assigns.call.(flags, context)
  end

  defmodule Tell do
    @moduledoc false
    @behaviour Skillbook.Handler
    # Sends its process and context to the process in the assigns, and waits for its answer.
    @impl true
    def execute(_flags, context) do
      send(context.assigns.tell, {:handler, self(), context})

      receive do
        :go_on -> {:ok, "went on"}
      end
    end
  end
end
