import { GatewayError } from '../../../core/errors.ts'
import type { ImageAbilities } from '../../model-facts.ts'

type Quality = string | null | undefined

const AUTO_QUALITY = 'auto'

/** Values of the specification, which every model takes in one way or another. */
const SPECIFIED: readonly string[] = ['auto', 'low', 'medium', 'high', 'standard', 'hd']

/** Two of them name the same quality in the words of two families of models. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['hd', 'high'],
  ['standard', 'medium'],
])

/**
 * Checks `quality` (API specification, "Image edit request"). A model without a list of its own leaves it to its vendor.
 * @throws GatewayError `invalid_request` with param `quality`.
 */
export function checkQuality(quality: Quality, abilities: ImageAbilities | undefined): void {
  const known = abilities?.qualities
  if (quality === undefined || quality === null || known === undefined) return
  if (known.includes(quality) || SPECIFIED.includes(quality)) return
  const values = [...new Set([...SPECIFIED, ...known])].join(', ')
  throw new GatewayError('invalid_request', { message: `quality: must be one of ${values}`, param: 'quality' })
}

/**
 * The quality as the vendor's model knows it: the caller's, or what its alias stands for. Undefined where none was given,
 * and where the model has nothing of the kind.
 */
export function vendorQuality(quality: Quality, abilities: ImageAbilities | undefined): string | undefined {
  if (quality === undefined || quality === null) return undefined
  const known = abilities?.qualities
  if (known === undefined || known.includes(quality)) return quality
  const meant = ALIASES.get(quality)
  return meant !== undefined && known.includes(meant) ? meant : undefined
}

/**
 * The quality that a request is billed at: the vendor's word for it, else `auto`, or the model's first quality where it
 * knows no `auto`.
 */
export function billedQuality(quality: Quality, abilities: ImageAbilities | undefined): string {
  const known = abilities?.qualities
  const usual = known === undefined || known.includes(AUTO_QUALITY) ? AUTO_QUALITY : (known[0] ?? AUTO_QUALITY)
  return vendorQuality(quality, abilities) ?? usual
}

/** Was a quality asked for that the model has nothing of, and that is more than the default? */
export function losesQuality(quality: Quality, abilities: ImageAbilities | undefined): boolean {
  const isAsked = quality !== undefined && quality !== null && quality !== AUTO_QUALITY
  return isAsked && vendorQuality(quality, abilities) === undefined
}
