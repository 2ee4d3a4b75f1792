import type { PriceFile } from '../../src/catalog/prices/prices.ts'

/** Prices that tests calculate with; round numbers of our own, no vendor's. */
export const testPrices: PriceFile = {
  currency: 'USD',
  prices: [
    ...chat('chat-relayed', '1.00', '4.00'),
    ...chat('chat-qwen', '0.50', '2.00'),
    ...chat('cl-sonnet-4-6', '3.00', '15.00'),
    ...chat('cl-opus-4-7', '5.00', '25.00'),
    ...chat('gmn-2.5-pro', '1.25', '10.00'),
    ...chat('gmn-2.5-flash', '0.30', '2.50'),
    ...[
      'embedding-relayed',
      'text-embedding-v4',
      'text-embedding-004',
      'gmn-embedding-001',
      'gmn-embedding-2-preview',
      'vy-4-large',
      'vy-4',
      'vy-4-lite',
    ].map((model) => ({ model, meter: 'input_token' as const, amount: '0.02', per: 1_000_000 })),
  ],
}

function chat(model: string, input: string, output: string): PriceFile['prices'][number][] {
  return [
    { model, meter: 'input_token', amount: input, per: 1_000_000 },
    { model, meter: 'output_token', amount: output, per: 1_000_000 },
    { model, meter: 'cached_input_token', amount: (Number(input) / 10).toFixed(3), per: 1_000_000 },
  ]
}
