/**
 * Web page for operators.
 *
 * @example import { consoleHandler } from 'signalbox/console' import { expressHandler } from 'signalbox/express'
 *
 * app.use('/console', expressHandler(consoleHandler(gateway, { operatorKeys: [{ name: 'ops', key: operatorKey }] })))
 */

export { type ConsoleHandlerOptions, consoleHandler } from './console-handler.ts'
