import type { ModelDefinition } from '../model.ts'

/**
 * Chat models of Anthropic (API specification, "Chat completion request"). Longest answers: the vendor's model table. Their
 * context size depends on the account, so it is omitted.
 */
export const ANTHROPIC_CHAT_MODELS: readonly ModelDefinition[] = [
  {
    id: 'cl-opus-4-7',
    kind: 'chat',
    vendor: 'anthropic',
    upstream: 'claude-opus-4-7',
    aliases: ['claude-opus-4-7'],
    limits: { contextTokens: 1_000_000, maxOutputTokens: 128_000 },
    created: Date.UTC(2026, 3, 16) / 1000,
    displayName: 'Claude Opus 4.7',
  },
  {
    id: 'cl-sonnet-4-6',
    kind: 'chat',
    vendor: 'anthropic',
    upstream: 'claude-sonnet-4-6',
    aliases: ['claude-sonnet-4-6'],
    limits: { contextTokens: 1_000_000, maxOutputTokens: 128_000 },
    displayName: 'Claude Sonnet 4.6',
  },
]
