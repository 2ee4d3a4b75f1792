/** Marks the end of a prefix that the vendor caches (Anthropic API, "Prompt caching"). */
export interface CacheControl {
  readonly type: 'ephemeral'
  readonly ttl?: '5m' | '1h'
}

/** Marks the end of a cached prefix in OpenAI's dialect. */
export interface CacheBreakpoint {
  readonly mode: 'explicit'
  readonly ttl?: string
}

/** Cache mark of either dialect, at a part of a chat message or at a tool. The gateway translates it for the vendor. */
export interface CacheMarks {
  readonly cache_control?: CacheControl
  readonly prompt_cache_breakpoint?: CacheBreakpoint
}
