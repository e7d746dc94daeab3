<?php // Answers what PHP reads, as the bytes of Latin-1: php -S 127.0.0.1:PORT php.php
$mb = fn ($value) => $value === null ? null : (is_string($value) ? bin2hex($value) : 'json:' . json_encode($value));
echo json_encode(['cookie' => $mb($_COOKIE['sid'] ?? null), 'query' => $mb($_GET['k'] ?? null),
    'header' => $mb(trim($_SERVER['HTTP_X_API_KEY'] ?? ''))]);
