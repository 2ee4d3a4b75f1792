import { definePrices, type PriceFile, type Prices } from './prices.ts'

/** A price list that can be replaced while the gateway runs. */
export interface ReloadablePrices extends Required<Prices> {
  /**
   * Replaces the whole list, at once: a call is charged either by the old list or by the new one. Calls under way keep the
   * prices that their money was held by.
   * @throws TypeError naming row and field when the new list is not sound; the last good one stays in force then.
   */
  reload(file: PriceFile): void
}

/**
 * Prices for `createGateway({ prices })` that may change without a restart.
 * @throws TypeError as {@link definePrices} does.
 */
export function reloadablePrices(initial: PriceFile): ReloadablePrices {
  let current = definePrices(initial)
  return {
    quote: (model, billingFields) => current.quote(model, billingFields),
    rows: () => current.rows(),
    reload(file) {
      current = definePrices(file)
    },
  }
}
