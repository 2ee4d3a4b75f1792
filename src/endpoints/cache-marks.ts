// See docs/decisions/0015-prompt-caching.md.

import { isJsonObject } from '../core/json.ts'

/** A caller's mark on a part of a prompt or on a tool. It asks the vendor to cache the prompt up to this point. */
export interface CacheMark {
  /** Member in which the caller wrote the mark. */
  readonly field: 'cache_control' | 'prompt_cache_breakpoint'
  /** Whether to cache for an hour or longer, instead of some minutes. */
  readonly isLong: boolean
}

/** Returns the `cache_control` (Anthropic) or `prompt_cache_breakpoint` (OpenAI) of a part or tool, if any. */
export function cacheMarkOf(part: object): CacheMark | undefined {
  const { cache_control: control, prompt_cache_breakpoint: breakpoint } = part as Readonly<Record<string, unknown>>
  if (isJsonObject(control)) return { field: 'cache_control', isLong: control['ttl'] === '1h' }
  if (!isJsonObject(breakpoint)) return undefined
  return { field: 'prompt_cache_breakpoint', isLong: breakpoint['ttl'] === '12h' }
}

/** How long the marks of a prompt ask the vendor to cache it. The longest time counts. */
export type CacheTime = 'none' | 'minutes' | 'hour'

/** The members of a request of OpenAI's dialects that can carry marks. */
interface MarkedRequest {
  readonly messages: readonly object[]
  readonly tools?: unknown
  /** Mark for the whole request (OpenRouter, "Prompt Caching"; Anthropic, "Automatic caching"). */
  readonly cache_control?: unknown
}

/** Returns the longest time that the marks of a chat ask for. */
export function chatCacheTime({ messages, tools, cache_control }: MarkedRequest): CacheTime {
  let longest = longestOf(tools, cache_control === undefined ? 'none' : longestOf([{ cache_control }], 'none'))
  for (const message of messages) longest = longestOf((message as { readonly content?: unknown }).content, longest)
  return longest
}

function longestOf(parts: unknown, before: CacheTime): CacheTime {
  let longest = before
  if (!Array.isArray(parts) || longest === 'hour') return longest
  for (const part of parts) {
    const mark = isJsonObject(part) ? cacheMarkOf(part) : undefined
    if (mark !== undefined) longest = mark.isLong ? 'hour' : longest === 'none' ? 'minutes' : longest
  }
  return longest
}
