import type { ChatAbilities } from '../../endpoints/chat/fit-request.ts'
import { effortUnseen } from './reasons-unseen.ts'

const LOW_TO_HIGH = ['low', 'medium', 'high'] as const
const LOW_TO_XHIGH = [...LOW_TO_HIGH, 'xhigh'] as const

/**
 * Efforts of OpenAI's models that the catalog does not know, such as fine-tuned ones and deployments; the first pattern that fits
 * counts (OpenAI, "Models": the page of each; "Reasoning models"). The efforts of other models are not known.
 */
const EFFORTS: readonly (readonly [pattern: RegExp, efforts: readonly string[]])[] = [
  [/^(?:gpt-(?:[34]|[\d.]+-chat)|chat|o1-(?:mini|preview)|o\d(?:-mini)?-deep-research)/, []],
  [/^(?:o\d|codex-mini|gpt-5(?:\.1)?-codex)/, LOW_TO_HIGH],
  [/^gpt-5-pro/, ['high']],
  [/^gpt-5\.\d-pro/, ['medium', 'high', 'xhigh']],
  [/^gpt-5\.\d-codex/, LOW_TO_XHIGH],
  [/^gpt-5(?!\.)/, ['minimal', ...LOW_TO_HIGH]],
  [/^gpt-5\.1(?!\d)/, ['none', ...LOW_TO_HIGH]],
  [/^gpt-5\.[2-5](?!\d)/, ['none', ...LOW_TO_XHIGH]],
]

/**
 * Returns what a model of OpenAI's accepts. While models reason, they reject stop sequences and every temperature except the
 * default (OpenAI, API reference, `stop`; "Reasoning models").
 * @param listed Efforts that the catalog lists for the model.
 */
export function openaiAbilities(model: string, listed: readonly string[] | undefined): ChatAbilities {
  const base = model.replace(/^ft:/, '')
  return {
    efforts: listed ?? EFFORTS.find(([pattern]) => pattern.test(base))?.[1],
    rejectedFields: (effort) => (effortUnseen(model, effort) ? ['temperature', 'top_p', 'stop'] : []),
  }
}
