/** Literals that share a reason. */
export interface SdkOmission {
  readonly reason: string
  /** `member value`, separated by commas. */
  readonly literals: string
}

/**
 * Literals and members of official SDKs that the code does not know by name, by declaration file. A reason that begins with
 * "Not supported" names a gap. Other reasons say how the code handles the value without its name.
 */
export const SDK_OMISSIONS: Readonly<Record<string, readonly SdkOmission[]>> = {
  'openai/resources/chat/completions/completions.d.ts': [
    {
      reason:
        'Servers that moderate get the field and their verdict passes unchanged. Elsewhere the field is left out.',
      literals: `
        type moderation_result, type moderation_results
      `,
    },
  ],
  'openai/resources/responses/responses.d.ts': [
    {
      reason:
        'Not supported in translation: vendors with Responses get local and priced shells and patch tools unchanged. Other models reject the tools and their items with 400.',
      literals: `
        type apply_patch_call, type apply_patch_call_output, type create_file, type delete_file, type exec,
        type exit, type local_shell_call, type local_shell_call_output, type shell_call, type shell_call_output,
        type update_file
      `,
    },
    {
      reason:
        'Members of containers pass unchanged with their tool, which needs a price. The walk over price members covers their memory.',
      literals: `
        type allowlist, type container_auto, type container_reference, type inline, type skill_reference
      `,
    },
    {
      reason: 'Not supported without a price: the vendor runs the tool, so a request gets 400 that names it.',
      literals: `
        type programmatic_tool_calling
      `,
    },
    {
      reason: 'Errors, callers and diagnoses pass unchanged; no code reads their kind.',
      literals: `
        type cache_hit, type cache_miss, type comparison_response_not_found, type direct, type http_error,
        type invalid_request_error, type mcp_protocol_error, type mcp_tool_execution_error
      `,
    },
    {
      reason:
        'Not supported in translation: only the vendor that encrypted a summary can read it. Other models reject the items with 400.',
      literals: `
        type compaction, type compaction_trigger
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
      reason:
        'Citations pass unchanged from vendors with Responses. Ids of files and containers in them are recognised by their members.',
      literals: `
        type container_file_citation, type file_citation, type file_path
      `,
    },
    {
      reason:
        'Actions of web searches pass unchanged. Only the action of type search is charged, or a call without an action.',
      literals: `
        type find_in_page, type open_page
      `,
    },
    {
      reason:
        'Servers that moderate get the field and their verdict passes unchanged. Elsewhere the field is left out.',
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
      reason: 'Events of images are recognised by the prefix of their type.',
      literals: `
        type response.image_generation_call.completed, type response.image_generation_call.generating,
        type response.image_generation_call.in_progress, type response.image_generation_call.partial_image
      `,
    },
    {
      reason:
        'Events of hosted tools and of closed reasoning pass unchanged from vendors with Responses. Hooks find their texts by the type without its last step.',
      literals: `
        type response.code_interpreter_call.completed, type response.code_interpreter_call.in_progress,
        type response.code_interpreter_call.interpreting, type response.code_interpreter_call_code.delta,
        type response.code_interpreter_call_code.done, type response.compaction.compacting,
        type response.file_search_call.completed, type response.file_search_call.in_progress,
        type response.file_search_call.searching, type response.mcp_call.completed, type response.mcp_call.failed,
        type response.mcp_call.in_progress, type response.mcp_call_arguments.delta,
        type response.mcp_call_arguments.done, type response.mcp_list_tools.completed,
        type response.mcp_list_tools.failed, type response.mcp_list_tools.in_progress,
        type response.reasoning_text.done, type response.shell_call_command.added,
        type response.shell_call_command.delta, type response.shell_call_command.done,
        type response.web_search_call.completed, type response.web_search_call.in_progress,
        type response.web_search_call.searching
      `,
    },
    {
      reason: 'Not supported: this endpoint has no WebSocket mode.',
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
    {
      reason: 'Not supported: hooks read the output of a shell in a container only from the item that ends it.',
      literals: `
        type response.shell_call_output_content.delta, type response.shell_call_output_content.done
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
  'openai/resources/audio/speech.d.ts': [
    {
      reason: 'Dated ids are found by the id without its date.',
      literals: `
        SpeechModel gpt-4o-mini-tts-2025-12-15
      `,
    },
  ],
  'openai/resources/embeddings.d.ts': [
    {
      reason: 'The models are rows of the snapshot, which is JSON.',
      literals: `
        EmbeddingModel text-embedding-3-large, EmbeddingModel text-embedding-3-small,
        EmbeddingModel text-embedding-ada-002
      `,
    },
  ],
  'openai/resources/batches.d.ts': [
    {
      reason: 'Not supported: batches do not create videos, so lines for this endpoint are rejected.',
      literals: `
        endpoint /v1/videos
      `,
    },
  ],
  'openai/resources/files.d.ts': [
    {
      reason: 'Not supported: files of callers are kept for batches only. Uploads with another purpose get 400.',
      literals: `
        FilePurpose assistants, FilePurpose evals, FilePurpose fine-tune, FilePurpose user_data,
        FilePurpose vision, purpose assistants, purpose assistants_output, purpose fine-tune,
        purpose fine-tune-results, purpose user_data, purpose vision
      `,
    },
  ],
  'openai/resources/videos.d.ts': [
    {
      reason:
        "Not supported: videos have an API of their own at /v1/videos/generations, and OpenAI's video models are not served.",
      literals: `
        VideoModel sora-2, VideoModel sora-2-2025-10-06, VideoModel sora-2-2025-12-08, VideoModel sora-2-pro,
        VideoModel sora-2-pro-2025-10-06, VideoSeconds 12, VideoSeconds 4, VideoSeconds 8, VideoSize 1024x1792,
        VideoSize 1280x720, VideoSize 1792x1024, VideoSize 720x1280, error_type other,
        error_type potentially_unintended_data_access, error_type potentially_unintended_data_transfer,
        error_type potentially_unintended_destructive_activity, object video.deleted, order asc, order desc,
        variant spritesheet, variant thumbnail
      `,
    },
  ],
  '@anthropic-ai/sdk/resources/messages/messages.d.ts': [
    {
      reason:
        'Choices of context edits, callers and cache diagnoses pass unchanged at Anthropic; no code reads their kind.',
      literals: `
        type direct, type messages_changed, type model_changed, type previous_message_not_found,
        type system_changed, type tools_changed
      `,
    },
    {
      reason:
        'Members of the tools that fetch or search pass unchanged with their tool at Anthropic; no code reads their kind.',
      literals: `
        type all, type approximate, type except, type only
      `,
    },
    {
      reason:
        'Dated tools that Anthropic or the client runs are recognised by the type without its date. Translations drop and report them.',
      literals: `
        type bash_20250124, type browser_toolset_20260801, type code_execution_20250522,
        type code_execution_20250825, type code_execution_20260120, type code_execution_20260521,
        type computer_toolset_20260801, type memory_20250818, type text_editor_20250124,
        type text_editor_20250429, type text_editor_20250728, type tool_search_tool_bm25_20251119,
        type tool_search_tool_regex_20251119, type web_fetch_20250910, type web_fetch_20260209,
        type web_fetch_20260309, type web_fetch_20260318, type web_search_20260209, type web_search_20260318
      `,
    },
    {
      reason: 'Results of tools that Anthropic runs pass unchanged at Anthropic. Translations drop and report them.',
      literals: `
        type bash_code_execution_output, type bash_code_execution_result, type bash_code_execution_tool_result,
        type bash_code_execution_tool_result_error, type code_execution_output, type code_execution_result,
        type code_execution_tool_result, type code_execution_tool_result_error,
        type encrypted_code_execution_result, type text_editor_code_execution_create_result,
        type text_editor_code_execution_str_replace_result, type text_editor_code_execution_tool_result,
        type text_editor_code_execution_tool_result_error, type text_editor_code_execution_view_result,
        type tool_search_tool_result, type tool_search_tool_result_error, type tool_search_tool_search_result,
        type web_fetch_result, type web_fetch_tool_result, type web_fetch_tool_result_error,
        type web_search_result, type web_search_tool_result, type web_search_tool_result_error
      `,
    },
    {
      reason: 'Blocks of browser and computer toolsets pass unchanged at Anthropic. Translations drop and report them.',
      literals: `
        type browser_state, type coordinate, type download_completed, type download_failed, type download_started,
        type ref, type tab_opened
      `,
    },
    {
      reason: 'The id of the file is recognised by its member. Translations drop and report the block.',
      literals: `
        type container_upload
      `,
    },
    {
      reason: 'Citations pass unchanged at Anthropic. Translations keep the text without them.',
      literals: `
        type char_location, type citations_delta, type content_block_location, type page_location,
        type search_result_location, type web_search_result_location
      `,
    },
  ],
  '@anthropic-ai/sdk/resources/beta/messages/messages.d.ts': [
    {
      reason:
        'Choices of context edits, callers and cache diagnoses pass unchanged at Anthropic; no code reads their kind.',
      literals: `
        type direct, type messages_changed, type model_changed, type previous_message_not_found,
        type system_changed, type tools_changed
      `,
    },
    {
      reason:
        'Members of the tools that fetch or search pass unchanged with their tool at Anthropic; no code reads their kind.',
      literals: `
        type all, type approximate, type except, type only
      `,
    },
    {
      reason:
        'Dated tools that Anthropic or the client runs are recognised by the type without its date. Translations drop and report them.',
      literals: `
        type advisor_20260301, type bash_20241022, type bash_20250124, type browser_toolset_20260801,
        type code_execution_20250522, type code_execution_20250825, type code_execution_20260120,
        type code_execution_20260521, type computer_20241022, type computer_20250124, type computer_20251124,
        type computer_toolset_20260801, type memory_20250818, type text_editor_20241022,
        type text_editor_20250124, type text_editor_20250429, type text_editor_20250728,
        type tool_search_tool_bm25_20251119, type tool_search_tool_regex_20251119, type web_fetch_20250910,
        type web_fetch_20260209, type web_fetch_20260309, type web_fetch_20260318, type web_search_20260209,
        type web_search_20260318
      `,
    },
    {
      reason: 'Results of tools that Anthropic runs pass unchanged at Anthropic. Translations drop and report them.',
      literals: `
        type advisor_redacted_result, type advisor_result, type advisor_tool_result,
        type advisor_tool_result_error, type bash_code_execution_output, type bash_code_execution_result,
        type bash_code_execution_tool_result, type bash_code_execution_tool_result_error,
        type code_execution_output, type code_execution_result, type code_execution_tool_result,
        type code_execution_tool_result_error, type encrypted_code_execution_result,
        type text_editor_code_execution_create_result, type text_editor_code_execution_str_replace_result,
        type text_editor_code_execution_tool_result, type text_editor_code_execution_tool_result_error,
        type text_editor_code_execution_view_result, type tool_search_tool_result,
        type tool_search_tool_result_error, type tool_search_tool_search_result, type web_fetch_result,
        type web_fetch_tool_result, type web_fetch_tool_result_error, type web_search_result,
        type web_search_tool_result, type web_search_tool_result_error
      `,
    },
    {
      reason: 'Blocks of browser and computer toolsets pass unchanged at Anthropic. Translations drop and report them.',
      literals: `
        type browser_state, type coordinate, type download_completed, type download_failed, type download_started,
        type ref, type tab_opened
      `,
    },
    {
      reason: 'The id of the file is recognised by its member. Translations drop and report the block.',
      literals: `
        type container_upload
      `,
    },
    {
      reason: 'Citations pass unchanged at Anthropic. Translations keep the text without them.',
      literals: `
        type char_location, type citations_delta, type content_block_location, type page_location,
        type search_result_location, type web_search_result_location
      `,
    },
    {
      reason: 'Usage of other models is recognised by their model, whatever the kind of the sampling.',
      literals: `
        type advisor_message, type fallback_message
      `,
    },
    {
      reason: 'Not supported without a price: another model answers, so fallbacks get 400 that names the field.',
      literals: `
        type fallback, type not_applied, type redeemed
      `,
    },
    {
      reason: 'Edits of the context pass unchanged at Anthropic. Translations drop and report the field.',
      literals: `
        type clear_thinking_20251015, type clear_tool_uses_20250919, type summarize, type thinking_turns,
        type tool_uses
      `,
    },
    {
      reason: 'Compaction is recognised by the prefix of its type.',
      literals: `
        type compact_20260112
      `,
    },
    {
      reason: 'Servers of MCP pass unchanged at Anthropic. Translations drop and report them.',
      literals: `
        type mcp_tool_listing, type mcp_tool_reference, type mcp_tool_result, type mcp_tool_use,
        type mcp_toolset_reference
      `,
    },
    {
      reason: 'What became of thinking blocks passes unchanged at Anthropic; no code reads its kind.',
      literals: `
        type thinking_dropped, type thinking_mismatch_allowed
      `,
    },
    {
      reason: 'Threads are recognised by their field. Models of other vendors reject it with 400.',
      literals: `
        type create
      `,
    },
    {
      reason: 'The budget of a task passes unchanged at Anthropic. Translations drop and report it.',
      literals: `
        type tokens
      `,
    },
  ],
  '@google/genai/dist/genai.d.ts': [
    {
      reason: 'Any named reason counts as a block of the prompt, and an unspecified finish reason counts as OTHER.',
      literals: `
        BlockedReason JAILBREAK, FinishReason FINISH_REASON_UNSPECIFIED
      `,
    },
    {
      reason: 'Settings of the SDK itself, which are not sent.',
      literals: `
        EmbedContentConfig abortSignal, EmbedContentConfig httpOptions, GenerateContentConfig abortSignal,
        GenerateContentConfig automaticFunctionCalling, GenerateContentConfig httpOptions
      `,
    },
    {
      reason:
        'Not supported: tools that the vendor runs. Chats drop and report web search, and such tools are never sent.',
      literals: `
        Part codeExecutionResult, Part executableCode, Part toolResponse, Tool codeExecution, Tool computerUse,
        Tool enterpriseWebSearch, Tool exaAiSearch, Tool fileSearch, Tool googleMaps, Tool googleSearch,
        Tool googleSearchRetrieval, Tool mcpServers, Tool parallelAiSearch, Tool retrieval, Tool urlContext,
        ToolConfig includeServerSideToolInvocations, ToolConfig retrievalConfig
      `,
    },
    {
      reason: 'Results of tools that the vendor runs, or scores that no chat has.',
      literals: `
        Candidate avgLogprobs, Candidate citationMetadata, Candidate groundingMetadata, Candidate safetyRatings,
        Candidate urlContextMetadata
      `,
    },
    {
      reason: 'Not supported: answers that are continued by a token. They are never requested.',
      literals: `
        Candidate continuationToken, GenerateContentConfig automaticContinuation,
        GenerateContentConfig continuationToken
      `,
    },
    {
      reason: 'Not supported: chats drop and report the tier of service.',
      literals: `
        GenerateContentConfig serviceTier
      `,
    },
    {
      reason: 'Not supported: chats drop and report the detail of an image, and clips of a video.',
      literals: `
        GenerateContentConfig mediaResolution, Part mediaProcessing, Part mediaResolution, Part videoMetadata
      `,
    },
    {
      reason: 'Not supported: explicit caches are objects of the operator. Implicit caches need no member.',
      literals: `
        GenerateContentConfig cachedContent
      `,
    },
    {
      reason:
        "Not supported: safety settings, labels and routing are the operator's, and no field of a chat names them.",
      literals: `
        GenerateContentConfig enableEnhancedCivicAnswers, GenerateContentConfig generationOutputConfig,
        GenerateContentConfig labels, GenerateContentConfig modelArmorConfig,
        GenerateContentConfig modelSelectionConfig, GenerateContentConfig routingConfig,
        GenerateContentConfig safetySettings
      `,
    },
    {
      reason: 'Not supported: chats have no audio output at Gemini, and transcriptions use a prompt.',
      literals: `
        GenerateContentConfig audioTimestamp, GenerateContentConfig audioTranscriptionConfig,
        GenerateContentConfig speechConfig, Part audioTranscription, Part speechMetadata
      `,
    },
    {
      reason: 'Members of live sessions and of streamed arguments, which are never requested.',
      literals: `
        FunctionCall partialArgs, FunctionCall willContinue, FunctionCallingConfig streamFunctionCallArguments,
        FunctionDeclaration behavior, FunctionResponse scheduling, FunctionResponse willContinue,
        GenerateContentResponseUsageMetadata initialPromptTokenCount
      `,
    },
    {
      reason: "Schemas are written in the vendor's own subset. Rules outside of it are described in words or left out.",
      literals: `
        FunctionDeclaration parametersJsonSchema, Schema maxProperties, Schema minProperties,
        Schema propertyOrdering, Schema title
      `,
    },
    {
      reason:
        'Not supported: images are requested by size and aspect ratio only. Other options are rejected or have no field.',
      literals: `
        ImageConfig imageOutputOptions, ImageConfig outputCompressionQuality, ImageConfig outputMimeType,
        ImageConfig personGeneration, ImageConfig prominentPeople
      `,
    },
    {
      reason: 'Not supported: no field of an embedding request names a task, a title or a treatment of media.',
      literals: `
        EmbedContentConfig audioTrackExtraction, EmbedContentConfig documentOcr, EmbedContentConfig taskType,
        EmbedContentConfig title
      `,
    },
    {
      reason: 'Data of the client about a part, which a chat does not have.',
      literals: `
        Part partMetadata
      `,
    },
  ],
}
