import { expect, test } from 'vitest'
import { ANTHROPIC_PRICE_MEMBERS } from '../../src/vendors/anthropic/anthropic-vertex.ts'
import { OPENAI_PRICE_MEMBERS } from '../../src/vendors/shared/openai-abilities.ts'
import { SDK_REQUESTS, type SdkMember, type SdkRequestFile, sdkRequestMembers } from '../support/sdk-request-members.ts'

/** Members that price fields of the endpoints name, or that count units: images, seconds, answers. */
const BY_PRICE_FIELDS = `
  service_tier speed inference_geo web_search_options tools modalities n quality size seconds fallbacks betas model type
`

/** Members that change the number of tokens, which the vendor reports by kind. */
const AS_TOKENS = `
  best_of max_tokens max_completion_tokens max_output_tokens max_output_length max_characters max_content_tokens max_tool_calls max_uses
  max_num_results top_logprobs logprobs verbosity reasoning reasoning_effort effort thinking budget_tokens task_budget total
  remaining partial_images input_fidelity detail oversized_image context_compression search_context_size search_content_types
  prediction cache_control ttl prompt_cache_breakpoint prompt_cache_options prompt_cache_retention prewarm mode use_cache caching
  compaction compact_threshold context_management
`

/** Members that can only lower a price. */
const CHEAPER = `
  completion_window background_options fallback_credit_token token prompt_cache_key
`

/** Content, identity, form and control of a request: at most the number of tokens depends on them. */
const IGNORED_FIELDS = `
  access_programs acknowledged_safety_checks action actions active allowed_callers allowed_domains allowed_tools always annotations
  approval_request_id approve approximate arguments async attributes audio authorization authorization_token background
  billing_policy block_binding blocked_domains button bytes call_id caller caller_id categories chunking_strategy citations
  cited_text city clear_at clear_at_least clear_tool_inputs client_tool_results close_tab code command commands
  comparison_response_id configs connector_id container container_id content context continuation_id conversation country
  cursor_position custom cyber data default_config defer_loading definition description diagnostics diff dimensions
  disable_parallel_tool_use display display_height display_height_px display_number display_width display_width_px document_index
  document_title domain domain_secrets double_click download_id eager_input_streaming echo edits embedding_weight enable_zoom enabled
  encoding_format encrypted_content encrypted_index encrypted_stdout end_block_index end_char_index end_index end_page_number env
  environment error error_code error_message exclude_tools execution exit_code external_web_access file file_data file_id file_ids
  file_type file_upload file_url filename filters find fingerprint form_input format frame_duration_ms frequency_penalty from
  function function_call functions generate_summary get_page_text grammar headers hold_key hover hybrid_search id image image_url
  include include_obfuscation include_usage index input input_audio input_examples input_image_mask input_reference input_schema
  input_tokens instructions is_error is_file_update items javascript_exec json_schema keep key keys keywords known_speaker_names
  known_speaker_references language languages left_click left_click_drag left_mouse_down left_mouse_up lines list_tabs logit_bias
  logprob logs markup mask mcp_server_name mcp_servers media_type message messages metadata middle_click moderation
  moderation_details moderation_stage mouse_move name namespace navigate network_policy never new_lines new_start new_tab num_lines
  old_lines old_start operation outcome output output_compression output_config output_schema output_tokens outputs page_age
  parallel_tool_calls param parameters path pattern pause_after_compaction pending_safety_checks personality phase policy
  prefix_mismatch_behavior prefix_padding_ms presence_penalty previous_message_id previous_response_id prompt properties queries
  query ranker ranking_options read_console read_network read_only read_page reason reasoning_tokens refusal region require_approval
  required response_format response_inclusion result results retrieved_at return_code revised_prompt right_click role
  safety_identifier schema score score_threshold screenshot scroll scroll_to scroll_x scroll_y search_result_index seed
  server_description server_label server_name server_tool_results server_url signature silence_duration_ms size_bytes skill_id
  skills source sources start_block_index start_char_index start_index start_line start_page_number state_changes status stderr
  stdout stop stop_reason stop_sequences store stream stream_format stream_options strict style suffix summary svg_usage switch_tab syntax
  system tab_id tabs temperature text text_weight thread threshold timeout_ms timestamp_granularities timezone title to tool
  tool_call_id tool_calls tool_changes tool_choice tool_configuration tool_id tool_name tool_names tool_references tool_use_id
  toolset_name top_p total_lines total_tokens transformations trigger triple_click truncation tunnel_id url url_sources user user_id
  user_input user_location user_profile_id value variables vector_store_ids version voice wait working_directory workspace_id x y
  zoom
`

const KNOWN = new Set(`${BY_PRICE_FIELDS} ${AS_TOKENS} ${CHEAPER} ${IGNORED_FIELDS}`.trim().split(/\s+/))

const TABLES = [OPENAI_PRICE_MEMBERS, ANTHROPIC_PRICE_MEMBERS]
const PRICED = new Set(TABLES.flatMap((table) => Object.values(table).flat()).map(({ path }) => path))
const lastOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1)
const PRICED_NAMES = new Set([...PRICED].map(lastOf))

/** Members of earlier calls of the image tool in the input, which cost nothing. */
const isOfImageCall = ({ ownerTypes }: SdkMember): boolean => ownerTypes.includes('image_generation_call')

function isKnown(member: SdkMember): boolean {
  if (!PRICED_NAMES.has(member.name)) return KNOWN.has(member.name)
  const path = member.path.replace(/^items\[\]/, 'input[]')
  // The SDK lists a member of several holders once; the table names each holder.
  return PRICED.has(path) || isOfImageCall(member)
}

test.each(Object.keys(SDK_REQUESTS) as SdkRequestFile[])(
  'knows how each member of a request of %s changes its price',
  (file) => {
    const unknown = sdkRequestMembers(file).filter((member) => !isKnown(member))
    expect(unknown.map(({ path, owner }) => `${owner}: ${path}`)).toEqual([])
  },
  240_000,
)
