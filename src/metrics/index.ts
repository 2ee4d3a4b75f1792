/**
 * Metrics of gateways, for Prometheus.
 *
 * @example
 * import { metricsHandler, prometheus } from 'signalbox/prometheus'
 * import { expressHandler } from 'signalbox/express'
 *
 * const metrics = prometheus()
 * const gateway = createGateway({ vendors, billing: 'off', observe: [metrics] })
 * app.use('/metrics', expressHandler(metricsHandler(metrics, { operatorKey })))
 */
import { GatewayMetrics, type PrometheusOptions } from './gateway-metrics.ts'

export type { GatewayMetrics, PrometheusOptions } from './gateway-metrics.ts'
export { type MetricsHandlerOptions, metricsHandler } from './metrics-handler.ts'

/** Creates the metrics of the gateways in this process. */
export function prometheus(options: PrometheusOptions = {}): GatewayMetrics {
  return new GatewayMetrics(options)
}
