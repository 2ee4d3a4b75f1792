/** A Messages request with one user message. */
export function messagesBody(
  model: string,
  text: string,
  rest: Record<string, unknown> = {},
): Record<string, unknown> & { readonly model: string } {
  return { model, max_tokens: 200, messages: [{ role: 'user', content: text }], ...rest }
}

/** Headers that a command-line coding client sends, besides its credential. */
export const CODING_CLIENT_HEADERS = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta':
    'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,prompt-caching-scope-2026-01-05,mid-conversation-system-2026-04-07,effort-2025-11-24,dangerous-tool-use-2026-09-03',
  'anthropic-dangerous-direct-browser-access': 'true',
  'user-agent': 'claude-cli/2.1.293 (external, cli)',
  'x-app': 'cli',
  'x-claude-code-session-id': 'e6d1c2b3-0000-4000-8000-000000000001',
  'x-stainless-lang': 'js',
}

/** A request of the shape that a command-line coding client sends (Claude Code, gateway protocol reference). */
export function codingClientRequest(model: string, text: string): Record<string, unknown> {
  return {
    model,
    max_tokens: 32_000,
    stream: true,
    system: [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.293; cc_entrypoint=cli;' },
      { type: 'text', text: 'You help with code.', cache_control: { type: 'ephemeral' } },
    ],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: '<system-reminder>Nothing is new.</system-reminder>' },
          { type: 'text', text, cache_control: { type: 'ephemeral' } },
        ],
      },
    ],
    tools: ['Bash', 'Read'].map((name) => ({
      name,
      description: 'Does something on this machine.',
      input_schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { command: { type: 'string' } },
        required: ['command'],
        additionalProperties: false,
      },
    })),
    thinking: { type: 'adaptive' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    output_config: { effort: 'high' },
    safeguards: [{ type: 'dangerous_tool_use', classifier_context: { v: 1, permission_mode: 'auto' } }],
    metadata: { user_id: '{"device_id":"b8","account_uuid":"","session_id":"e6d1c2b3"}' },
  }
}

/** Headers of Claude Code 2.1.332 in print mode, besides its credential. */
export const PRINT_MODE_HEADERS = {
  ...CODING_CLIENT_HEADERS,
  'anthropic-beta':
    'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,per-turn-control-2026-07-01,mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13,advanced-tool-use-2025-11-20,effort-2025-11-24',
  'user-agent': 'claude-cli/2.1.332 (external, sdk-cli)',
}

/** A request of the shape that Claude Code 2.1.332 sends in print mode: an effort for the turn, and tools that load on demand. */
export function printModeRequest(model: string, text: string): Record<string, unknown> {
  const { safeguards: _safeguards, ...request } = codingClientRequest(model, text)
  const { messages, tools } = request as { messages: readonly object[]; tools: readonly object[] }
  const environment = [{ type: 'text', text: '# Environment', cache_control: { type: 'ephemeral' } }]
  const placeholder = { type: 'object', properties: {}, additionalProperties: false }
  return {
    ...request,
    max_tokens: 128_000,
    messages: [...messages, { role: 'system', content: environment, output_config: { effort: 'medium' } }],
    tools: [
      ...tools,
      {
        name: 'DeferredToolPlaceholder',
        description: 'Stands for later tools.',
        input_schema: placeholder,
        defer_loading: true,
      },
    ],
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort: 'medium' },
  }
}
