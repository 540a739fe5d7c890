defmodule Skillbook.Support.NativeLibrary do
  @moduledoc false
  # Stubs of a native library's functions, which the library replaces when it is loaded. There is
  # a module of stubs for each library:
  #
  #     use Skillbook.Support.NativeLibrary,
  #       app: :skillbook,
  #       crate: "skillbook_sql",
  #       twins: [sql_statements(sql, dialect, params)],
  #       functions: [sql_open(path, patience_ms), sql_close(database)]
  #
  #   * `:app` - the application with the library, in `priv/native`
  #   * `:crate` - the library's crate, in `native`
  #   * `:functions` - the functions with their arguments
  #   * `:twins` - functions of which the library has two versions. `NAME_now` runs on a normal
  #     scheduler and returns `:busy` if the work may take longer than a millisecond; then
  #     `NAME_dirty` runs on a dirty scheduler.
  #   * `:wish` - for a library that is built only where it is wanted: the application's setting
  #     and the variable that ask for it, and the name under which an error says that it is not
  #     built, unless its caller says so:
  #     `[setting: "embedder: :local", variable: "SKILLBOOK_EMBED", name: "the embedder"]`
  #
  # A library is loaded with its module: when a function is called first or, in a release, at the
  # start. One with a `:wish` may be missing, so its callers call `load/0` before; another one
  # that a release leaves out (`SKILLBOOK_PG=0`) is missing when a function is called.
  #
  # `bin/skillbook` builds a library that is missing when it is loaded, with the program that the
  # variable SKILLBOOK_BUILD names.

  defmacro __using__(options) do
    [app, crate] = for key <- [:app, :crate], do: Keyword.fetch!(options, key)
    twins = options |> Keyword.get(:twins, []) |> Enum.flat_map(&twin/1)
    functions = options |> Keyword.fetch!(:functions) |> Enum.map(&stub/1)

    quote do
      # Otherwise the compiler would load this module before the library is built.
      @compile {:autoload, false}
      unquote(load(app, crate, options[:wish]))

      # Whether the library is loaded. Never set: for a literal, the compiler would drop the
      # branch of a loaded library.
      def loaded?, do: :persistent_term.get({__MODULE__, :loaded?}, false)

      unquote_splicing(twins)
      unquote_splicing(functions)
    end
  end

  # Other modules may not be there yet when it runs.
  defp load(app, crate, nil) do
    quote do
      @on_load :load_with_module

      def load do
        path = path()

        with {:error, _} = failed <- :erlang.load_nif(path, 0) do
          if :os.getenv(~c"SKILLBOOK_BUILD") != false and
               unquote(__MODULE__).build?(unquote(crate), to_string(path)),
             do: :erlang.load_nif(path, 0),
             else: failed
        end
      end

      # A release loads the modules of all libraries at its start, and ends if one fails.
      def load_with_module do
        with {:error, _} = failed <- load() do
          if :code.get_mode() == :embedded and
               :erl_prim_loader.read_file_info(path() ++ ~c".so") == :error,
             do: :ok,
             else: failed
        end
      end

      defp path,
        do: :filename.join([:code.priv_dir(unquote(app)), ~c"native", unquote(~c"lib#{crate}")])
    end
  end

  # The module with the stubs must call `:erlang.load_nif/2` itself.
  defp load(app, crate, wish) do
    quote do
      # Loads the library, unless it is loaded, which takes well below a microsecond to find out.
      # The error says how to build it.
      @spec load() :: :ok | {:error, String.t()}
      def load do
        if loaded?() do
          :ok
        else
          path = unquote(__MODULE__).path(unquote(app), unquote(crate))
          _ = unquote(__MODULE__).build?(unquote(crate), path)
          result = :erlang.load_nif(String.to_charlist(path), 0)
          unquote(__MODULE__).loaded(result, unquote(app), path, unquote(wish))
        end
      end
    end
  end

  defp stub({name, _, arguments}) do
    ignored = List.duplicate({:_, [], nil}, length(arguments || []))

    quote do
      def unquote(name)(unquote_splicing(ignored)), do: :erlang.nif_error(:nif_not_loaded)
    end
  end

  defp twin({name, meta, arguments}) do
    [now, dirty] = versions = for scheduler <- [:now, :dirty], do: :"#{name}_#{scheduler}"

    call =
      quote do
        def unquote(name)(unquote_splicing(arguments)) do
          with :busy <- unquote(now)(unquote_splicing(arguments)),
               do: unquote(dirty)(unquote_splicing(arguments))
        end
      end

    [call | Enum.map(versions, &stub({&1, meta, arguments}))]
  end

  @doc "The path of a library, without its suffix."
  @spec path(atom(), String.t()) :: String.t()
  def path(app, crate), do: Path.join(:code.priv_dir(app), "native/lib#{crate}")

  @doc """
  Builds a missing library with the program in SKILLBOOK_BUILD, which shows its progress on
  standard error. Returns whether it is built.
  """
  @spec build?(String.t(), String.t()) :: boolean()
  def build?(crate, path) do
    program = System.get_env("SKILLBOOK_BUILD")

    program != nil and not File.exists?(path <> ".so") and
      match?({_output, 0}, System.cmd(program, [crate]))
  end

  @doc "The result of `:erlang.load_nif/2` for a library with a wish."
  @spec loaded(:ok | {:error, {atom(), charlist()}}, atom(), String.t(), keyword()) ::
          :ok | {:error, String.t()}
  def loaded(result, app, path, wish) do
    case result do
      :ok -> :ok
      # Another process was faster.
      {:error, {:reload, _}} -> :ok
      {:error, {_, text}} -> {:error, missing(wish) <> problem(text, path) <> build(app, wish)}
    end
  end

  defp missing(wish), do: if(name = wish[:name], do: "#{name} is not built: ", else: "")

  defp problem(text, path) do
    if File.exists?(path <> ".so"),
      do: "the library cannot be loaded (#{text}); to build it again, ",
      else: ""
  end

  defp build(app, wish) do
    "set `config :skillbook, #{wish[:setting]}` in config/config.exs, or " <>
      "#{wish[:variable]}=1 in the environment, and run mix deps.compile #{app} --force; " <>
      "in the package's own folder: #{wish[:variable]}=1 mix compile"
  end
end
