/** Literals that share a reason. */
export interface SdkOmission {
  readonly reason: string
  /** `member value`, separated by commas. */
  readonly literals: string
}

/** Literals of official SDKs that the code does not know by name, by declaration file. */
export const SDK_OMISSIONS: Readonly<Record<string, readonly SdkOmission[]>> = {
  'openai/resources/chat/completions/completions.d.ts': [
    {
      reason: 'The gateway moderates by itself or passes the verdict on unchanged; no code reads its kind.',
      literals: `
        type moderation_result, type moderation_results
      `,
    },
  ],
  'openai/resources/responses/responses.d.ts': [
    {
      reason:
        'Not supported in translation: vendors with Responses get shell and patch tools unchanged, and other models reject them with 400.',
      literals: `
        type allowlist, type apply_patch_call, type apply_patch_call_output, type container_auto,
        type container_file_citation, type container_reference, type create_file, type delete_file, type exec,
        type exit, type inline, type local, type local_shell_call, type local_shell_call_output, type shell,
        type shell_call, type shell_call_output, type skill_reference, type update_file
      `,
    },
    {
      reason: 'Members of diagnoses, errors and programmatic calls pass unchanged; no code reads their kind.',
      literals: `
        type cache_hit, type cache_miss, type compaction_trigger, type comparison_response_not_found, type direct,
        type http_error, type mcp_protocol_error, type mcp_tool_execution_error, type programmatic_tool_calling
      `,
    },
    {
      reason:
        'Not supported in translation: vendors with Responses get computer use unchanged, and other models reject it with 400.',
      literals: `
        type click, type computer_call, type computer_call_output, type computer_screenshot, type computer_use,
        type double_click, type drag, type keypress, type move, type screenshot, type scroll, type wait
      `,
    },
    {
      reason: 'Citations pass unchanged from vendors that speak the dialect.',
      literals: `
        type file_citation, type file_path
      `,
    },
    {
      reason: 'Actions of web searches pass unchanged.',
      literals: `
        type find_in_page, type open_page
      `,
    },
    {
      reason: 'The gateway moderates by itself or passes the verdict on unchanged; no code reads its kind.',
      literals: `
        type moderation_result
      `,
    },
    {
      reason: 'Events of audio pass unchanged from vendors with Responses. Translations never write them.',
      literals: `
        type response.audio.delta, type response.audio.done, type response.audio.transcript.delta,
        type response.audio.transcript.done
      `,
    },
    {
      reason:
        'Events of hosted tools pass unchanged from vendors that speak the dialect; the translation of chats never makes them.',
      literals: `
        type response.code_interpreter_call.completed, type response.code_interpreter_call.in_progress,
        type response.code_interpreter_call.interpreting, type response.code_interpreter_call_code.delta,
        type response.code_interpreter_call_code.done, type response.compaction.compacting,
        type response.file_search_call.completed, type response.file_search_call.in_progress,
        type response.file_search_call.searching, type response.image_generation_call.completed,
        type response.image_generation_call.generating, type response.image_generation_call.in_progress,
        type response.image_generation_call.partial_image, type response.mcp_call.completed,
        type response.mcp_call.failed, type response.mcp_call.in_progress, type response.mcp_call_arguments.delta,
        type response.mcp_call_arguments.done, type response.mcp_list_tools.completed,
        type response.mcp_list_tools.failed, type response.mcp_list_tools.in_progress,
        type response.reasoning_text.done, type response.shell_call_command.added,
        type response.shell_call_command.delta, type response.shell_call_command.done,
        type response.shell_call_output_content.delta, type response.shell_call_output_content.done,
        type response.web_search_call.completed, type response.web_search_call.in_progress,
        type response.web_search_call.searching
      `,
    },
    {
      reason: 'Messages of the WebSocket mode, which this endpoint does not serve.',
      literals: `
        type response.create, type response.steer, type response.steer.accepted, type response.steer.failed,
        type response.steer.pending
      `,
    },
    {
      reason: 'Web search is recognised by the prefix of its type.',
      literals: `
        type web_search_2025_08_26, type web_search_preview, type web_search_preview_2025_03_11
      `,
    },
  ],
  'openai/resources/images.d.ts': [
    {
      reason: 'Events of streams are recognised by their suffix.',
      literals: `
        type image_edit.completed, type image_edit.partial_image, type image_generation.completed,
        type image_generation.partial_image
      `,
    },
  ],
  'openai/resources/audio/transcriptions.d.ts': [
    {
      reason: 'The form field passes unchanged; its kind is not read.',
      literals: `
        type server_vad
      `,
    },
  ],
  '@anthropic-ai/sdk/resources/messages/messages.d.ts': [
    {
      reason: 'Choices of context edits, callers and cache diagnoses pass unchanged; no code reads their kind.',
      literals: `
        type all, type direct, type except, type messages_changed, type model_changed, type only,
        type previous_message_not_found, type system_changed, type tools_changed
      `,
    },
    {
      reason: 'Dated tools that Anthropic runs, or that the client runs, are recognised by the prefix of their type.',
      literals: `
        type bash_20250124, type browser_toolset_20260801, type code_execution_20250522, type code_execution_20250825,
        type code_execution_20260120, type code_execution_20260521, type computer_toolset_20260801,
        type memory_20250818, type text_editor_20250124, type text_editor_20250429, type text_editor_20250728,
        type tool_search_tool_bm25_20251119, type tool_search_tool_regex_20251119, type web_fetch_20250910,
        type web_fetch_20260209, type web_fetch_20260309, type web_fetch_20260318, type web_search_20260209,
        type web_search_20260318
      `,
    },
    {
      reason: 'Results of tools that Anthropic runs pass unchanged at Anthropic. Translations drop and report them.',
      literals: `
        type bash_code_execution_output, type bash_code_execution_result, type bash_code_execution_tool_result,
        type bash_code_execution_tool_result_error, type code_execution_output, type code_execution_result,
        type code_execution_tool_result, type code_execution_tool_result_error, type encrypted_code_execution_result,
        type text_editor_code_execution_create_result, type text_editor_code_execution_str_replace_result,
        type text_editor_code_execution_tool_result, type text_editor_code_execution_tool_result_error,
        type text_editor_code_execution_view_result, type tool_search_tool_result, type tool_search_tool_result_error,
        type tool_search_tool_search_result, type web_fetch_result, type web_fetch_tool_result,
        type web_fetch_tool_result_error, type web_search_result, type web_search_tool_result,
        type web_search_tool_result_error
      `,
    },
    {
      reason:
        'Blocks of browser and computer toolsets and of containers pass unchanged at Anthropic. Translations drop and report them.',
      literals: `
        type browser_state, type container_upload, type coordinate, type download_completed, type download_failed,
        type download_started, type ref, type tab_opened
      `,
    },
    {
      reason: 'Citations pass unchanged at Anthropic; other vendors do not have them.',
      literals: `
        type char_location, type citations_delta, type content_block_location, type page_location,
        type search_result_location, type web_search_result_location
      `,
    },
  ],
  '@google/genai/dist/genai.d.ts': [
    {
      reason: 'Any named reason counts as a block of the prompt, and an unspecified finish reason counts as `OTHER`.',
      literals: `
        BlockedReason JAILBREAK, FinishReason FINISH_REASON_UNSPECIFIED
      `,
    },
  ],
}
