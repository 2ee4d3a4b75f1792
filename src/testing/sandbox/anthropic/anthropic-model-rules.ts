/** What a model accepts. Source: Anthropic's migration guides and release notes. */
export interface AnthropicModelRules {
  /** `one`: temperature or top_p, not both; `default`: default values only; `none`: the fields are refused. */
  readonly sampling: 'one' | 'default' | 'none'
  /** Accepted values of `thinking.type`. */
  readonly thinking: readonly string[]
  readonly thinksByDefault: boolean
  /** The text of thinking stays empty unless `display: "summarized"` is sent. */
  readonly hidesThinking: boolean
  readonly takesPrefill: boolean
  readonly takesForcedToolChoice: boolean
  readonly maxOutputTokens: number
}

const OLDEST: AnthropicModelRules = {
  sampling: 'one',
  thinking: ['enabled', 'disabled'],
  thinksByDefault: false,
  hidesThinking: false,
  takesPrefill: true,
  takesForcedToolChoice: true,
  maxOutputTokens: 64_000,
}

/** The rules of a model, from the family and version in its id; an id of another kind gets the oldest rules. */
export function anthropicModelRules(model: string): AnthropicModelRules {
  const match = /^claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(model)
  const family = match?.[1] ?? ''
  const version = Number(match?.[2] ?? 0) + Number(match?.[3] ?? 0) / 10
  if (version < 4.6) return OLDEST
  const newer = { ...OLDEST, takesPrefill: false, maxOutputTokens: 128_000 }
  if (version < 4.7) return { ...newer, thinking: ['adaptive', 'enabled', 'disabled'] }
  const hidden = { ...newer, hidesThinking: true }
  if (version < 5) return { ...hidden, sampling: 'default', thinking: ['adaptive', 'disabled'] }
  const fifth = { ...hidden, thinksByDefault: true, sampling: 'none' as const }
  if (family === 'haiku') return { ...fifth, thinking: ['adaptive', 'disabled'] }
  if (family === 'fable' || family === 'mythos') {
    return { ...fifth, thinking: ['adaptive'], takesForcedToolChoice: version < 5.1 }
  }
  if (version < 5.5) return { ...fifth, sampling: 'default', thinking: ['adaptive', 'disabled'] }
  const offValue = family === 'sonnet' ? ['between_tools'] : []
  return { ...fifth, thinking: ['adaptive', ...offValue], takesForcedToolChoice: false }
}
