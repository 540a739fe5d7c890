# Runs Dialyzer for bin/dialyzer, with the folders of the compiled modules and of the kept types.

defmodule Check do
  # The applications that lib calls.
  @erlang [:erts, :kernel, :stdlib, :compiler, :crypto, :public_key, :ssl]
  @elixir [:elixir, :logger, :mix, :ex_unit]

  def run([build, folder]) do
    modules =
      for file <- Path.wildcard(Path.join(build, "lib/skillbook*/ebin/*.beam")),
          {source, options} = compiled(file),
          source =~ "/lib/",
          do: %{beam: to_charlist(file), source: source, optional: optional(options)}

    if modules == [], do: stop(3, "no compiled modules in #{build}")
    plt = types(folder)

    findings =
      [analysis_type: :succ_typings, init_plt: plt, warnings: [:unknown]]
      |> Keyword.put(:files, Enum.map(modules, & &1.beam))
      |> :dialyzer.run()
      |> Enum.reject(&optional?(&1, modules))

    for finding <- findings,
        do: IO.puts(:dialyzer.format_warning(finding, filename_opt: :fullpath))

    IO.puts("#{length(modules)} modules, #{length(findings)} findings")
    if findings != [], do: System.halt(1)
  catch
    {:dialyzer_error, message} -> stop(3, message)
  end

  defp stop(status, message) do
    IO.puts(:stderr, message)
    System.halt(status)
  end

  # Written under another name first: an interrupted run leaves no half file.
  defp types(folder) do
    otp = to_string(:erlang.system_info(:version))
    plt = Path.join(folder, "dialyzer-erts-#{otp}-elixir-#{System.version()}.plt")

    unless File.exists?(plt) do
      folders = for app <- @erlang ++ @elixir, do: :filename.join(:code.lib_dir(app), ~c"ebin")
      new = to_charlist(plt <> ".new")
      :dialyzer.run(analysis_type: :plt_build, output_plt: new, files_rec: folders)
      File.rename!(new, plt)
    end

    to_charlist(plt)
  end

  defp compiled(file) do
    {:ok, {_module, chunks}} = :beam_lib.chunks(to_charlist(file), [:compile_info, :debug_info])

    {:debug_info_v1, :elixir_erl, {:elixir_v1, %{compile_opts: options}, _specs}} =
      chunks[:debug_info]

    {to_string(chunks[:compile_info][:source]), options}
  end

  defp optional(options),
    do: options |> Keyword.get_values(:no_warn_undefined) |> List.flatten()

  defp optional?({:warn_unknown, {file, _line}, {kind, {module, _name, _arity}}}, modules)
       when kind in [:unknown_function, :unknown_type] do
    Enum.any?(modules, &(String.ends_with?(&1.source, to_string(file)) and module in &1.optional))
  end

  defp optional?(_finding, _modules), do: false
end

Check.run(System.argv())
