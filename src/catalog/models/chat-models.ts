import type { ModelDefinition } from '../define-model.ts'

/**
 * Chat models (API specification, "Chat completion request"). Longest answers: the vendors' model tables. A context size is
 * given only where the vendor states one size for every account.
 */
export const CHAT_MODELS: readonly ModelDefinition[] = [
  {
    id: 'cl-opus-4-7',
    kind: 'chat',
    vendor: 'anthropic',
    upstream: 'claude-opus-4-7',
    aliases: ['claude-opus-4-7'],
    limits: { maxOutputTokens: 128_000 },
    created: Date.UTC(2026, 3, 16) / 1000,
    displayName: 'Claude Opus 4.7',
  },
  {
    id: 'cl-sonnet-4-6',
    kind: 'chat',
    vendor: 'anthropic',
    upstream: 'claude-sonnet-4-6',
    aliases: ['claude-sonnet-4-6'],
    limits: { maxOutputTokens: 128_000 },
    displayName: 'Claude Sonnet 4.6',
  },
  {
    id: 'gmn-2.5-pro',
    kind: 'chat',
    vendor: 'gemini',
    upstream: 'gemini-2.5-pro',
    aliases: ['gemini-2.5-pro'],
    limits: { contextTokens: 1_048_576, maxOutputTokens: 65_536 },
    created: Date.UTC(2025, 5, 17) / 1000,
    displayName: 'Gemini 2.5 Pro',
  },
  {
    id: 'gmn-2.5-flash',
    kind: 'chat',
    vendor: 'gemini',
    upstream: 'gemini-2.5-flash',
    aliases: ['gemini-2.5-flash'],
    limits: { contextTokens: 1_048_576, maxOutputTokens: 65_536 },
    created: Date.UTC(2025, 5, 17) / 1000,
    displayName: 'Gemini 2.5 Flash',
  },
]
