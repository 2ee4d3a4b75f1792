import type { CatalogModel } from '../../catalog/model.ts'
import { GatewayError } from '../../core/errors.ts'

/** How a requested vector size is reached. */
export interface DimensionPlan {
  /** Size to request from the vendor, or `undefined` for its default. */
  readonly ask: number | undefined
  /** Size to truncate the vendor's vectors to, or `undefined` for no truncation. */
  readonly truncateTo: number | undefined
}

/**
 * Decides who resizes vectors: the vendor if it offers that size, else the gateway by truncating a larger one. The
 * vendor decides for models that the catalog does not describe.
 * @throws GatewayError `invalid_request` for a size above the model's own, or one that its specification does not list.
 */
export function planDimensions(model: CatalogModel, wished: number | undefined): DimensionPlan {
  const { dimensions: own, nativeDimensions: native, truncatesDimensions } = model.limits
  if (wished === undefined || (own === undefined && native === undefined)) return { ask: wished, truncateTo: undefined }
  if (native !== undefined && isOffered(native, wished)) return { ask: wished, truncateTo: undefined }
  const largest = Math.max(own ?? 0, native === undefined ? 0 : largestOf(native))
  if (truncatesDimensions === false || wished > largest) {
    const offered = native === undefined ? `at most ${largest}` : describe(native)
    throw new GatewayError('invalid_request', {
      message: `dimensions: this model offers ${offered}`,
      param: 'dimensions',
    })
  }
  if (own === wished) return { ask: undefined, truncateTo: undefined }
  const source = native === undefined ? undefined : smallestAbove(native, wished)
  return { ask: source, truncateTo: wished }
}

type NativeDimensions = NonNullable<CatalogModel['limits']['nativeDimensions']>

function isRange(native: NativeDimensions): native is { readonly min: number; readonly max: number } {
  return !Array.isArray(native)
}

function isOffered(native: NativeDimensions, wished: number): boolean {
  return isRange(native) ? wished >= native.min && wished <= native.max : native.includes(wished)
}

function largestOf(native: NativeDimensions): number {
  return isRange(native) ? native.max : Math.max(...native)
}

function smallestAbove(native: NativeDimensions, wished: number): number {
  return isRange(native) ? native.min : Math.min(...native.filter((size) => size > wished))
}

function describe(native: NativeDimensions): string {
  return isRange(native) ? `${native.min} to ${native.max}` : native.join(', ')
}
