import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RetryBudget } from '../../src/routing/selection.ts'

describe('the retry budget', () => {
  test('bounds retries to 20 % of requests under total outage, whatever was saved before', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 1, max: 4 }), (healthy, wishes) => {
        const budget = new RetryBudget()
        for (let request = 0; request < healthy; request++) budget.deposit()
        let retries = 0
        for (let request = 0; request < 1000; request++) {
          budget.deposit()
          for (let wish = 0; wish < wishes; wish++) if (budget.withdraw()) retries += 1
        }
        expect(retries).toBeLessThanOrEqual(healthy === 0 ? 100 : 200)
      }),
    )
  })

  test('lets a quiet gateway retry, and says how much is left', () => {
    const budget = new RetryBudget()
    const taken = Array.from({ length: 11 }, () => budget.withdraw())

    expect(taken.filter(Boolean)).toHaveLength(10)
    expect(budget.left).toBe(0)
  })
})
