import { GatewayError } from '../../../core/errors.ts'
import type { ImageAbilities } from '../../model-facts.ts'
import { type PixelSize, parsePixelSize } from './pixel-size.ts'

/** Lets the vendor choose; every model takes it, because the field's default is this. */
export const AUTO_SIZE = 'auto'

type Size = string | null | undefined
type FreeSize = NonNullable<ImageAbilities['freeSize']>

/**
 * Checks a size against the list of a model alone (API specification, "Image edit request", `size`).
 * @throws GatewayError `invalid_request` with param `size`.
 */
export function checkListedSize(size: Size, abilities: ImageAbilities | undefined): void {
  const sizes = abilities?.sizes
  if (isUnset(size) || sizes === undefined || sizes.includes(size)) return
  throw badSize(`must be one of ${[...new Set([AUTO_SIZE, ...sizes])].join(', ')}; 2K and 4K are not supported here`)
}

/**
 * Checks a size against the list of a model and its rule for free sizes (API specification, "Endpoints", note 1).
 * @throws GatewayError `invalid_request` with param `size`.
 */
export function checkFreeSize(size: Size, abilities: ImageAbilities | undefined): void {
  const rule = abilities?.freeSize
  if (rule === undefined) {
    checkListedSize(size, abilities)
    return
  }
  if (isUnset(size) || abilities?.sizes?.includes(size) === true) return
  const pixels = parsePixelSize(size)
  const fault =
    pixels === undefined ? 'must be auto, or width and height in pixels such as 1536x864' : faultOf(pixels, rule)
  if (fault !== undefined) throw badSize(fault)
}

/** The size that a request is billed at: the caller's own, else the model's, else `auto`. */
export function billedSize(size: Size, abilities: ImageAbilities | undefined): string {
  const isOwn = !isUnset(size) || (size === AUTO_SIZE && takesAuto(abilities))
  return isOwn ? (size as string) : (abilities?.defaultSize ?? AUTO_SIZE)
}

/** Does the vendor know `auto` for this model? Unknown counts as yes. */
export function takesAuto(abilities: ImageAbilities | undefined): boolean {
  return abilities?.sizes?.includes(AUTO_SIZE) ?? true
}

function isUnset(size: Size): size is null | undefined | typeof AUTO_SIZE {
  return size === undefined || size === null || size === AUTO_SIZE
}

function faultOf({ width, height }: PixelSize, rule: FreeSize): string | undefined {
  const longer = Math.max(width, height)
  const shorter = Math.min(width, height)
  const pixels = width * height
  if (rule.multipleOf !== undefined && (width % rule.multipleOf !== 0 || height % rule.multipleOf !== 0)) {
    return `width and height must both be divisible by ${rule.multipleOf}`
  }
  if (rule.maxSide !== undefined && longer > rule.maxSide) return `no side may be longer than ${rule.maxSide} pixels`
  if (rule.maxRatio !== undefined && longer > shorter * rule.maxRatio) {
    return `the longer side may be at most ${rule.maxRatio} times the shorter one`
  }
  if (rule.maxPixels !== undefined && pixels > rule.maxPixels) return `at most ${rule.maxPixels} pixels are possible`
  if (rule.minPixels !== undefined && pixels < rule.minPixels) return `at least ${rule.minPixels} pixels are needed`
  return undefined
}

function badSize(text: string): GatewayError {
  return new GatewayError('invalid_request', { message: `size: ${text}`, param: 'size' })
}
