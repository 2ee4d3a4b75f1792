import type { ByteSink, ExchangeHandler, GatewayRequest } from '../../../src/core/exchange.ts'

/** A handler written for one test. */
export const handling = (handle: (request: GatewayRequest, sink: ByteSink) => void): ExchangeHandler => ({ handle })
