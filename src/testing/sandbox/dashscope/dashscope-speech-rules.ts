const SHARED = ['Cherry', 'Serena', 'Ethan', 'Chelsie', 'Momo', 'Vivian', 'Moon', 'Maia', 'Kai', 'Nofish', 'Bella']

/** Most characters of one text; an ideograph counts as two, the stricter of two readings of the vendor's page. */
export const MAX_SPOKEN_CHARACTERS = 600

/** What one speech model takes. */
export interface DashScopeSpeechRules {
  readonly voices: readonly string[]
  readonly takesInstructions: boolean
}

const RULES: ReadonlyMap<string, DashScopeSpeechRules> = new Map([
  [
    'qwen3-tts-flash',
    {
      voices: [...SHARED, 'Jennifer', 'Ryan', 'Katerina', 'Aiden'],
      takesInstructions: false,
    },
  ],
  ['qwen3-tts-instruct-flash', { voices: SHARED, takesInstructions: true }],
])

/** The rules of a model (Model Studio, Qwen-TTS); undefined when there is no such model. */
export function speechRulesOf(model: string): DashScopeSpeechRules | undefined {
  return RULES.get(model)
}

/** How many characters a text counts as. */
export function spokenCharacters(text: string): number {
  let count = 0
  for (const character of text) count += /[\p{Script=Han}\p{Script=Hangul}]/u.test(character) ? 2 : 1
  return count
}
