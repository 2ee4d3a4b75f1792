/** Marks the end of a prefix that the vendor caches (Anthropic API, "Prompt caching"). */
export interface CacheControl {
  readonly type: 'ephemeral'
  readonly ttl?: '5m' | '1h'
}

/** The same in OpenAI's dialect. */
export interface CacheBreakpoint {
  readonly mode: 'explicit'
  readonly ttl?: string
}

/** Either of them, at a part of a chat's message or at a tool. The gateway translates it for the vendor. */
export interface CacheMarks {
  readonly cache_control?: CacheControl
  readonly prompt_cache_breakpoint?: CacheBreakpoint
}
