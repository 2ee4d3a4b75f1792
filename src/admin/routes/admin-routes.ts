import type { Administration, AdminRoute } from '../admin-route.ts'
import { ACCOUNT_ROUTES, BOOK_ROUTES, HOLD_ROUTES } from './account-routes.ts'
import { KEY_ROUTES } from './key-routes.ts'
import { AUDIT_ROUTES, OPERATOR_ROUTES } from './operator-routes.ts'
import { REQUEST_ROUTES, USAGE_ROUTES } from './request-routes.ts'
import { TASK_ROUTES, WEBHOOK_ROUTES } from './task-routes.ts'
import { VENDOR_ROUTES } from './vendor-routes.ts'

/** Routes that need only the store of a gateway. The command line runs them too. */
export const STORE_ROUTES: readonly AdminRoute<Administration>[] = [
  ...ACCOUNT_ROUTES,
  ...BOOK_ROUTES,
  ...HOLD_ROUTES,
  ...KEY_ROUTES,
  ...USAGE_ROUTES,
  ...REQUEST_ROUTES,
  ...WEBHOOK_ROUTES,
  ...AUDIT_ROUTES,
]

/** All routes of the admin API. */
export const ADMIN_ROUTES: readonly AdminRoute[] = [
  ...OPERATOR_ROUTES,
  ...STORE_ROUTES,
  ...VENDOR_ROUTES,
  ...TASK_ROUTES,
]
