Code.require_file("../../../test/test_helper.exs", __DIR__)
